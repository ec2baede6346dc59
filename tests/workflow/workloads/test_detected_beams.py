"""Beams that are detected: power and Stokes parameters over time, in place of voltages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from argand import PRECISIONS, beam_power
from matplotlib.figure import Figure

from tests.verdicts import is_right
from tests.workflow.workloads.on_cpu import computed
from workflow.accuracy.beam_power_accuracy import assess_beam_power
from workflow.files.input_error import InputError
from workflow.workloads import KINDS, workload_of
from workflow.workloads.detected_beams import DetectedBeams

SIZES = {"beams": 25, "antennas": 16, "samples": 120, "channels": 2, "polarizations": 2}
KEYS: dict[str, dict[str, Any]] = {
    "power": {"detect": "power", "integrate": 8},
    "stokes": {"detect": "stokes", "integrate": 8},
}


def workload(**parameters: Any) -> DetectedBeams:
    kind = KINDS["beamforming"]
    case = kind.case_type.model_validate({"kind": "beamforming", **SIZES, **parameters})
    found = workload_of("b", case, 11)
    assert isinstance(found, DetectedBeams)
    return found


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("detect", KEYS)
def test_every_precision_verifies_and_a_wrong_power_does_not(detect: str, precision: str) -> None:
    one = workload(**KEYS[detect])
    staged, result = computed(one, precision)
    row = PRECISIONS[precision]
    assert result.dtype == row.real_output
    reference = one.reference(staged)
    found = one.assess(staged, reference, result, row, "cpu")
    assert is_right(found, precision), found.reason
    assert found.measures["peak_shift"] == 0
    assert found.rel_frobenius is not None
    assert found.rel_frobenius < max(0.02, row.u)
    if precision in ("fp32", "bf16"):
        expected = {"fp32": (50, 90), "bf16": (15, 45)}[precision]
        assert expected[0] < found.measures["dynamic_range_db"] < expected[1]
    assert found.bound is not None
    assert found.worst_bound is not None
    assert found.bound <= found.worst_bound
    for wrong in (np.nan, result.max() + result.flat[3]):
        other = result.copy()
        other.flat[3] = wrong
        accuracy = one.assess(staged, reference, other, row, "cpu")
        assert not accuracy.verified
        assert accuracy.verdict == "wrong"


@pytest.mark.parametrize("x_is_east", [True, False])
def test_signs_of_stokes_parameters(x_is_east: bool) -> None:
    """As docs/kinds.md has them beside the IAU's, of which V is of a direction that turns N to E.

    The real fields are cos(a) cos(wt - p) to the north and sin(a) cos(wt - q) to the east.
    """
    turns = 2 * np.pi * np.arange(64) / 8
    for angle, north, east, iau in (
        (0, 0, 0, (1, 1, 0, 0)), (np.pi / 4, 0, 0, (1, 0, 1, 0)),
        (np.pi / 4, 0, np.pi / 2, (1, 0, 0, 1)), (np.pi / 4, 0, -np.pi / 2, (1, 0, 0, -1)),
    ):  # fmt: skip
        fields = [
            size * np.exp(1j * (turns - late))  # the analytic signal of the cosine
            for size, late in ((np.cos(angle), north), (np.sin(angle), east))
        ]
        feeds = np.array(fields[::-1] if x_is_east else fields)[:, None]
        found = beam_power(np.ones((2, 1, 1)), feeds, detect="stokes", integrate=64)
        theirs = np.array([1, -1, 1, 1] if x_is_east else [1, 1, 1, -1])
        np.testing.assert_allclose(found[:, 0, 0] / 64, theirs * iau, atol=1e-12)


@pytest.mark.parametrize("beam", [0, 12, 24])
def test_the_strongest_beam_points_at_the_source(beam: int) -> None:
    l, m = workload(**KEYS["power"]).directions()[beam]  # noqa: E741
    one = workload(**KEYS["power"], sources=[{"l": l, "m": m, "power": 2.0}], noise=0.5)
    _, found = computed(one, "bf16")
    assert np.all(found.mean(axis=(0, 1, 3)).argmax() == beam)


def test_a_moved_peak_is_reported_in_cells() -> None:
    one = workload(**KEYS["power"])
    staged, result = computed(one, "fp64")
    reference = one.reference(staged)
    moved = np.roll(result, 6, axis=2)  # a row and a column of five
    found = assess_beam_power(reference, moved, PRECISIONS["fp64"], backend="cpu", grid=(5, 5))
    assert not found.verified
    assert found.measures["peak_shift"] == pytest.approx(2**0.5)


@pytest.mark.parametrize("detect", KEYS)
def test_the_product_has_bins_and_directions(detect: str) -> None:
    one = workload(**KEYS[detect], frequencies={"start_hz": 50e6, "step_hz": 1e6})
    staged, result = computed(one, "fp64")
    product = one.product(staged, result)
    second = "stokes" if detect == "stokes" else "polarization"
    assert product.axes == ("frequency", second, "beam", "time")
    assert product.data.shape == (2, 4 if detect == "stokes" else 2, 25, 15)
    length = product.coordinates["integration_time"]
    expected = 8 * np.diff(staged.coordinates["time"].values[:2])
    np.testing.assert_allclose(length.values, np.repeat(expected, 15), rtol=1e-12)
    assert (length.units, length.of("")) == ("s", ("time",))
    time = product.coordinates["time"]
    assert time.units == "s"
    np.testing.assert_allclose(time.values[:2], [3.5e-6, 11.5e-6])
    if detect == "stokes":
        stokes = product.coordinates["stokes"]
        assert list(stokes.values) == ["I", "Q", "U", "V"]
        assert "V = 2 Im(x* y)" in stokes.long_name  # the IAU's is the negative of it
    outlined = one.product_outline(one.outline())
    assert (outlined.data.shape, outlined.data.dtype) == (result.shape, np.float64)
    one.picture(product, Figure().subplots())


def test_int8_of_a_file_is_detected(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "v.h5"
    samples = np.zeros((2, 6, 50), [("r", np.int8), ("i", np.int8)])
    samples["r"], samples["i"] = rng.integers(-100, 100, (2, *samples.shape))
    weights = rng.normal(size=(4, 6)) + 1j * rng.normal(size=(4, 6))
    with h5py.File(path, "w") as file:
        file["samples"], file["weights"], file["one"] = samples, weights, samples[:1]
    axes = {"samples": ["polarization", "antenna", "time"]}
    given = {"file": path, "weights": "weights", "samples": "samples", "axes": axes}
    kind = KINDS["beamforming"]

    def own(**keys: Any) -> Any:
        case = kind.case_type.model_validate({"kind": "beamforming", "input": given, **keys})
        return workload_of("b", case, 1)

    one = own(detect="stokes", integrate=10)
    one.check()
    _, found = computed(one, "fp64")
    z = np.einsum("ba,pat->pbt", weights, samples["r"] + 1j * samples["i"])
    intensity = (np.abs(z) ** 2).sum(axis=0).reshape(4, 5, 10).sum(axis=-1)
    np.testing.assert_allclose(found[0, 0], intensity, rtol=1e-12)
    with pytest.raises(InputError, match="integrate must divide the 50 samples along time, got 7"):
        own(detect="power", integrate=7).check()
    with h5py.File(path, "r+") as file:
        file["weights"][1, 2] = np.nan
    with pytest.raises(InputError, match=r"1 NaN.* first at .*beam 1, antenna 2 of"):
        own(detect="power").stage()
    given["samples"] = "one"
    with pytest.raises(InputError, match="detect: detect stokes needs two polarizations"):
        own(detect="stokes").check()
