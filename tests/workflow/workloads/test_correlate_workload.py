"""Correlation: visibilities of drawn sources and of files, means of flagged ones, measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from input_files import put
from matplotlib.figure import Figure
from test_chains import run

from tests.workflow.chained_cases import study_of
from tests.workflow.workloads.on_cpu import computed
from workflow import antennas
from workflow.accuracy.correlation_accuracy import coherence, signal_to_noise
from workflow.arrays import visibilities
from workflow.arrays.covariances import COVARIANCES, raised_for_mean
from workflow.data import Array, Staged
from workflow.drawn import Stretched
from workflow.files.input_error import InputError
from workflow.workloads.correlate import Correlate, CorrelateCase

SIZES = {"antennas": 16, "samples": 600, "channels": 2, "polarizations": 2, "integrate": 200}
EAST, NORTH = {"l": 0.3, "m": 0.1}, {"l": -0.2, "m": 0.25}


def correlate(**parameters: Any) -> Correlate:
    case = CorrelateCase.model_validate({"kind": "correlate", **parameters})
    return Correlate("v", case, 11)


def test_every_visibility_is_that_of_its_inputs_and_integration() -> None:
    one = correlate(**SIZES)
    staged, found = computed(one)
    x = staged.operands["voltages"].astype(complex)
    assert found.shape == (2, 3, 32, 32)
    for integration in range(3):
        part = x[..., 200 * integration : 200 * (integration + 1)]
        expected = np.einsum("fpat,fqbt->fpaqb", part, part.conj()).reshape(2, 32, 32)
        np.testing.assert_allclose(found[:, integration], expected, atol=1e-10)
    _, triangle = computed(correlate(**SIZES, form="triangle"))
    np.testing.assert_array_equal(visibilities.unfolded(triangle), found)


def test_coordinates_say_which_antennas_make_a_pair() -> None:
    for form in ("full", "triangle"):
        one = correlate(**SIZES, form=form)
        staged, found = computed(one)
        product = one.product(staged, found)
        assert product.data.shape == one.result_shape(one.outline())
        steps = np.diff(product.coordinates["integration"].values)
        np.testing.assert_allclose(steps, 200 / 200e3)
        assert product.coordinates["integration"].units == "s"
        first, second = (
            product.coordinates[f"{side}_antenna"].values for side in ("input", "conjugated_input")
        )
        polarization = product.coordinates["input_polarization"].values
        if form == "full":
            np.testing.assert_array_equal(first, [*range(16), *range(16)])
            np.testing.assert_array_equal(polarization, [0] * 16 + [1] * 16)
        else:
            assert len(first) == len(second) == 32 * 33 // 2
            assert (first[3], second[3]) == (2, 0)


def test_a_planted_source_has_its_phases_and_its_signal_to_noise() -> None:
    sources = [{**EAST, "power": 4.0}]
    one = correlate(antennas=16, samples=20000, sources=sources, noise=2.0)
    _, found = computed(one)
    steering = antennas.phases(one.frequencies_hz(), one.positions(), np.array([[0.3, 0.1]]))[0]
    # Of n t samples a power is known to 1 / sqrt(t) of itself: five standard errors.
    (ratio,) = signal_to_noise(found[0, 0], steering)
    assert abs(ratio / (4 / 2) - 1) < 5 * 2 / 20000**0.5
    pair = coherence(found[0, 0])[5, 2]
    assert abs(abs(pair) - 4 / 6) < 5 / 20000**0.5
    expected = np.angle(steering[0, 5] * steering[0, 2].conj())
    assert abs(np.angle(pair * np.exp(-1j * expected))) < 5 / 20000**0.5


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("form", ["full", "triangle"])
def test_every_precision_is_verified_and_measured(precision: str, form: str) -> None:
    one = correlate(**SIZES, form=form, sources=[EAST, NORTH])
    staged, found = computed(one, precision)
    row = PRECISIONS[precision]
    accuracy = one.assess(staged, one.reference(staged), found, row, "cpu")
    assert accuracy.verified, accuracy.reason
    assert accuracy.measures["coherence_error"] is not None
    assert accuracy.measures["coherence_error"] <= 4 * row.u + 1e-6
    assert accuracy.measures["snr_error_db"] is not None
    assert accuracy.measures["snr_error_db"] < 0.2
    wrong = found.copy()
    wrong[0, 0, ..., 3] *= 1.5
    assert not one.assess(staged, one.reference(staged), wrong, row, "cpu").verified


def in_file(folder: Path, axes: str, values: Any, **more: Any) -> Correlate:
    put(folder / "v.h5", v=values)
    order = ["time", "channel", "polarization", "antenna"]
    named = [order[int(axis)] for axis in axes]
    given = {"file": str(folder / "v.h5"), "voltages": "v", "axes": {"voltages": named}}
    return correlate(input=given, **more)


@pytest.mark.parametrize("order", ["0123", "3210", "1302"])
def test_axes_of_a_file_in_any_order(tmp_path: Path, order: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal((12, 2, 2, 3, 2)).view(complex)[..., 0]  # (time, ...)
    one = in_file(tmp_path, order, values.transpose([int(axis) for axis in order]), integrate=6)
    one.check()
    staged, found = computed(one)
    part = values[6:].transpose(1, 2, 3, 0).reshape(2, 6, 6)
    np.testing.assert_allclose(found[:, 1], part @ part.conj().swapaxes(-1, -2), atol=1e-12)
    product = one.product(staged, found)
    assert "integration" not in product.coordinates
    assert product.axes == ("frequency", "integration", "input", "conjugated_input")


def test_sums_of_int8_beyond_fp32s_integers_are_exact_by_moduli(tmp_path: Path) -> None:
    parts = np.random.default_rng(5).integers(-128, 128, (1, 1, 3, 1 << 16, 2), np.int8)
    parts[:, :, 0] = -128
    put(tmp_path / "v.h5", v=parts.view([("r", "i1"), ("i", "i1")])[..., 0])
    one = correlate(input={"file": str(tmp_path / "v.h5"), "voltages": "v"})
    _, found = computed(one, "7xint8")
    real, imag = np.moveaxis(parts[0, 0].astype(np.int64), -1, 0)
    sums = real @ real.T + imag @ imag.T, imag @ real.T - real @ imag.T
    assert sums[0][0, 0] == 1 << 31
    for got, exact in zip((found.real, found.imag), sums, strict=True):
        np.testing.assert_array_equal(got[0, 0], exact.astype(np.float32))


def test_integrations_of_descending_times_have_a_length_above_zero(tmp_path: Path) -> None:
    given = in_file(tmp_path, "0123", np.ones((12, 1, 1, 3), np.complex64)).case.input
    assert given is not None
    steps = {**given.model_dump(exclude_unset=True), "coordinates": {"time": {"step_s": -0.5}}}
    one = correlate(input=steps, integrate=6)
    staged, found = computed(one)
    coordinates = one.product(staged, found).coordinates
    np.testing.assert_array_equal(coordinates["integration_time"].values, [3.0, 3.0])
    np.testing.assert_array_equal(coordinates["integration"].values, [-1.25, -4.25])


def test_mistakes_are_reported_before_a_job_starts(tmp_path: Path) -> None:
    values = np.ones((10, 1, 1, 3), np.complex64)
    with pytest.raises(InputError, match="integrate must divide the 10 samples along time, got 3"):
        in_file(tmp_path, "0123", values, integrate=3).check()


def test_the_picture_has_amplitude_and_phase() -> None:
    for form in ("full", "triangle"):
        one = correlate(**SIZES, form=form)
        figure = Figure()
        axes = figure.subplots()
        one.picture(one.product(*computed(one, "fp32")), axes)
        assert len(axes.images) == 2
        amplitude, phase = (np.ma.filled(image.get_array(), np.nan) for image in axes.images)
        assert np.isfinite(amplitude[np.tril_indices(32)]).all()
        assert np.isfinite(phase[np.triu_indices(32, 1)]).all()
        assert np.isnan(phase[np.tril_indices(32)]).all()


def test_beams_of_another_workload_are_correlated(tmp_path: Path) -> None:
    beams = {"kind": "beamforming", "channels": 2, "beams": 4, "antennas": 5, "samples": 12}
    source = {
        "voltages": {"workload": "beams"},
        "axes": {"voltages": ["frequency", "polarization", "antenna", "time"]},
    }
    chain = {"beams": beams, "v": {"kind": "correlate", "integrate": 6, "input": source}}
    study = study_of(chain)
    found = run(study, tmp_path)
    x = found["beams"].data.reshape(2, 4, 2, 6).swapaxes(1, 2)
    expected = x @ x.conj().swapaxes(-1, -2)
    np.testing.assert_allclose(found["v"].data, expected, rtol=1e-10)
    time = found["beams"].coordinates["time"].values
    middle = found["v"].coordinates["integration"].values
    np.testing.assert_allclose(middle, time.reshape(2, 6).mean(axis=1))


@pytest.mark.parametrize(
    ("shape", "axes", "said"),
    [
        ((64, 16), None, "nothing names the axes of voltages, which are read as antenna 64 and "
         "time 16: where time is first, name them by input.axes"),
        ((16, 64), None, ""), ((64, 16), ["time", "antenna"], ""),
        ((64, 16), ["antenna", "time"], ""),
    ],
)  # fmt: skip
def test_axes_that_may_be_in_another_order(
    tmp_path: Path, shape: tuple[int, int], axes: list[str] | None, said: str
) -> None:
    put(tmp_path / "v.h5", v=np.ones(shape, np.complex64))
    named = {} if axes is None else {"axes": axes}
    one = correlate(input={"file": tmp_path / "v.h5", "voltages": "v", **named})
    assert one.remark(one.stage()) == said


@pytest.mark.parametrize("axis", [None, 0, 1, 2, 3])
def test_flagged_values_do_not_lessen_the_mean(axis: int | None, rng: np.random.Generator) -> None:
    """Held, and in stretches along any axis but the last: (time, feed, frequency, row, column)."""
    values = rng.standard_normal((5, 2, 3, 4, 4, 2)).astype(np.float32).view(np.complex64)[..., 0]
    flags = rng.random(values.shape) < 0.4
    flags[:, 0, 0, 1, 2] = True
    given = np.where(flags, 0, values)
    limit = 8 * np.finfo(np.float32).eps * np.abs(given).sum(axis=0).max()
    staged = Staged({"covariances": given.copy()}, {"covariances": COVARIANCES.axes})
    if axis is not None:

        def read() -> Iterator[tuple[int, Array]]:
            for start in range(0, given.shape[axis], 2):
                yield start, np.take(given, range(start, min(start + 2, given.shape[axis])), axis)

        drawn = {"covariances": Stretched(given.shape, given.dtype, axis, 2, read)}
        staged = replace(staged, operands={}, drawn=drawn)
    found = raised_for_mean(staged).held().operands["covariances"]
    assert found.dtype == given.dtype
    expected = given.sum(axis=0) / np.maximum((~flags).sum(axis=0), 1)
    # A factor, a product and a mean of five: each rounds once more.
    np.testing.assert_allclose(found.mean(axis=0), expected, rtol=0, atol=limit)
