"""The kind dft with ``power: true``: staged, computed, verified, delivered, chained, refused."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu
from matplotlib.figure import Figure
from scipy import signal
from test_chains import whole_as_its_shards

from tests.verdicts import is_right
from tests.workflow.streamed_runs import Ran, workload_of
from tests.workflow.workloads.on_cpu import computed
from tests.workflow.workloads.own_samples import samples_of, write_samples
from workflow.config.dft_case import DftCase
from workflow.files.input_error import InputError
from workflow.implementation import NoResultError
from workflow.storage.products import check_product
from workflow.workloads.dft import Dft
from workflow.workloads.power_spectra import PowerSpectra

TONE = {"frequency": 5 / 32, "amplitude": 2.0}
DRAWN: dict[str, Any] = {
    "power": True, "length": 32, "segments": 60, "batch": 3, "window": "hann",
    "sample_rate_hz": 3.2e3, "tones": [TONE],
}  # fmt: skip


def power(**parameters: Any) -> Dft:
    case = DftCase.model_validate({"kind": "dft", **parameters})
    return Dft.for_case(case)("s", case, 11)


def decibels(ratio: float) -> float:
    """The decibels of a ratio of amplitudes."""
    return 20 * math.log10(ratio)


def assessed(one: Dft, precision: str, change: Any = lambda result: result) -> Any:
    staged, result = computed(one, precision)
    plan_words = one.argand(staged, PRECISIONS[precision], cpu()).plan_words
    given, reference = one.as_computed(staged, plan_words), one.reference(staged)
    return one.assess(given, reference, change(result), PRECISIONS[precision], "cpu")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return write_samples(tmp_path)


def source(path: Path, **changes: Any) -> dict[str, Any]:
    return {"power": True, "length": 64, **samples_of(path, **changes)}


def test_a_case_with_power_is_computed_by_the_kernels_of_spectra() -> None:
    assert isinstance(power(**DRAWN), PowerSpectra)
    assert power(**DRAWN).operation == "spectrum"
    plain = power(length=8)
    assert (type(plain), plain.operation) == (Dft, "dft")


@pytest.mark.parametrize("average", [1, 4, "all"])
def test_a_tone_is_where_it_was_planted_at_its_power(average: Any) -> None:
    one = power(**DRAWN, average=average, scaling="spectrum", noise=0.0)
    product = one.product(*computed(one))
    frequency, time = product.coordinates["frequency"], product.coordinates["time"]
    assert (frequency.units, time.units, product.units) == ("Hz", "s", "")
    means = product.data.mean(axis=(0, 1))
    assert frequency.values[means.argmax()] == pytest.approx(3.2e3 * 5 / 32)
    np.testing.assert_allclose(means.max(), 4, rtol=1e-6)
    assert frequency.values.min() == -1600
    groups = {1: 60, 4: 15, "all": 1}[average]
    assert product.data.shape == (3, groups, 32) == one.result_shape(one.outline())
    assert product.axes == ("batch", "time", "frequency")
    np.testing.assert_allclose(np.diff(time.values), 16 * 60 / groups / 3.2e3)
    samples = {1: 32, 4: 80, "all": 976}[average]
    assert time.values[0] == pytest.approx((samples - 1) / 2 / 3.2e3)


@pytest.mark.parametrize("average", [1, "all"])
def test_pictures_are_a_curve_or_a_spectrogram(average: Any) -> None:
    one = power(**DRAWN, average=average, shift=True)
    product = one.product(*computed(one))
    assert (np.diff(product.coordinates["frequency"].values) > 0).all()
    check_product(product)
    axes = Figure().subplots()
    one.picture(product, axes)
    assert axes.get_xlabel() == "frequency (kHz)"
    assert axes.get_ylabel() == (
        "time (ms)" if average == 1 else "power (dB relative to the largest)"
    )
    if average == 1:  # bins of 100 Hz from -1.6 kHz on, and times, stand in the middle of cells
        times = 1e3 * product.coordinates["time"].values
        half = (times[1] - times[0]) / 2
        edges = [-1.65, 1.55, times[0] - half, times[-1] + half]
        assert axes.images[0].get_extent() == pytest.approx(edges)
    outline = one.product_outline(one.outline())
    assert (outline.data.shape, outline.axes) == (product.data.shape, product.axes)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "more", [{"average": 4}, {"real": True, "overlap": 0, "detrend": "constant"}]
)
def test_floor_and_scalloping_are_measured(precision: str, more: dict[str, Any]) -> None:
    accuracy = assessed(power(**DRAWN | more), precision)
    assert is_right(accuracy, precision), accuracy.reason
    off = 2 * PRECISIONS[precision].u  # of an amplitude: both factors of its products are off by u
    slack = 1e-4 + 2 * decibels(1 + off)
    assert accuracy.measures["scalloping_db"] == pytest.approx(1.4236, abs=slack)
    assert accuracy.measures.get("noise_floor_db", -400) < decibels(off)


def test_a_line_that_is_not_there_and_another_gain_are_reported() -> None:
    def leaking(result: Any) -> Any:
        result[..., 20] += 1e-5 * result[..., 5]
        return result

    def louder(result: Any) -> Any:
        result[..., 6] *= 1.1
        return result

    one = power(**DRAWN)
    right = assessed(one, "fp32")
    leaks, loud = assessed(one, "fp32", leaking), assessed(one, "fp32", louder)
    assert (leaks.verdict, loud.verdict) == ("wrong", "wrong")
    assert leaks.measures["noise_floor_db"] > right.measures["noise_floor_db"] + 20
    assert loud.measures["scalloping_db"] > right.measures["scalloping_db"] + 0.4


def test_a_library_may_add_all_segments_in_its_type() -> None:
    """Twice the roundings of a mean of 2 000 fp32 squares are wrong for our sums alone."""
    one = power(**DRAWN | {"segments": 2000, "average": "all"})
    staged, result = computed(one)
    reference, moved = one.reference(staged), result * (1 + 2000 * 2.0**-24)
    assert one.assess(staged, reference, moved, PRECISIONS["fp32"], "cpu").verdict == "verified"
    assert assessed(one, "fp32", lambda _: moved).verdict == "wrong"


def test_a_file_of_ones_own_is_estimated(own: Path) -> None:
    one = power(**source(own, sample_rate_hz=1e3), window="hamming", average=3)
    one.check()
    product = one.product(*computed(one))
    with h5py.File(own) as file:
        x = (file["x"]["r"] + 1j * file["x"]["i"]).T
    *_, expected = signal.spectrogram(
        x, 1e3, "hamming", 64, 32, detrend=False, return_onesided=False
    )
    expected = expected.swapaxes(-1, -2)[:, :9].reshape(3, 3, 3, 64).mean(axis=2)
    np.testing.assert_allclose(product.data, expected, rtol=1e-10)
    assert (product.axes, product.units) == (("antenna", "time", "frequency"), "V^2/Hz")
    assert product.coordinates["frequency"].values[1] == pytest.approx(1e3 / 64)
    assert assessed(one, "fp32").verified
    given = power(**source(own, samples="real", window="weights"), real=True, scaling="spectrum")
    given.check()
    assert assessed(given, "3xfp16").verified
    assert given.product(*computed(given)).coordinates["frequency"].units == "cycles/sample"
    whole = {**source(own), "length": None}
    assert computed(power(**whole))[1].shape == (3, 1, 400)


def test_samples_whose_times_descend_have_the_same_densities_at_turned_frequencies(
    own: Path,
) -> None:
    found = []
    real = source(own, samples="real", coordinates={"time": {"step_s": -1e-3}})
    outlined = power(**real, real=True).outline()
    last = power(**real, real=True).product_outline(outlined).coordinates["frequency"].values[-1]
    assert last == 500  # of real samples either sign is the same bin
    for step in (1e-3, -1e-3):
        one = power(**source(own, coordinates={"time": {"start": 0.5, "step_s": step}}))
        staged, result = computed(one, "fp64")
        assert assessed(one, "fp64").verified
        found.append((result, one.product(staged, result).coordinates["frequency"].values))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], -found[1][1])


def test_mistakes_are_reported_before_a_job_starts(own: Path) -> None:
    time = {"time": {"dataset": "t", "units": "s"}}
    for changes, more, said in (
        ({}, {"length": 401}, "length must be at most the samples of an axis, 400"),
        ({"window": "weights"}, {"length": 32}, "input.window must have 32 values"),
        ({"coordinates": time}, {}, "must have equal steps"),
        ({"samples": "real"}, {}, "must be"),
        ({}, {"real": True}, "must be"),
        ({}, {"average": 12}, "average must be at most 11, the segments, got 12"),
    ):
        with pytest.raises(InputError, match=said):
            power(**source(own, **changes) | more).check()
    for window in ("hammng", ["kaiser"]):
        with pytest.raises(ValueError, match=r"window: must be a window of scipy\.signal"):
            power(**DRAWN | {"window": window}).check()
    with pytest.raises(ValueError, match="average must be at most 60"):
        power(**DRAWN, average=61).check()


def test_a_window_that_no_power_is_divided_by_is_refused_before_a_job_starts(own: Path) -> None:
    """Read where it is a dataset; the kernel would refuse it at the run."""
    with h5py.File(own, "a") as file:
        file["zeros"] = np.zeros(64)
        file["difference"] = np.r_[np.ones(32), -np.ones(32)]
        file["nan"] = np.r_[np.nan, np.ones(63)]
    for window, scaling, said in (
        ("zeros", "density", "input.window must not be zero everywhere"),
        ("difference", "spectrum", "input.window must have a sum other than 0 at scaling 'spec"),
        ("nan", "density", "input.window must be finite"),
    ):
        with pytest.raises(InputError, match=said):
            power(**source(own, window=window), scaling=scaling).check()
    power(**source(own, window="difference")).check()


@pytest.mark.parametrize("detrend", [None, "constant", "linear"])
def test_nan_is_refused_or_let_through(own: Path, detrend: str | None) -> None:
    with h5py.File(own, "a") as file:
        file["real"][100, 1] = np.nan
    real = source(own, samples="real")
    with pytest.raises(InputError, match="1 NaN"):
        power(**real, real=True).stage()
    one = power(**real, real=True, allow_nonfinite=True, detrend=detrend)
    found = np.isfinite(computed(one, "fp32")[1])
    assert not found[1, 2:4].any()
    assert found.sum() == found.size - 2 * 33
    accuracy = assessed(one, "fp32")
    assert accuracy.verified, accuracy.reason
    assert assessed(one, "fp32", lambda x: np.nan_to_num(x)).verdict == "wrong"
    staged = one.stage()
    for peer in one.baselines(staged, cpu()):
        with (
            nullcontext() if detrend != "linear" else pytest.raises(NoResultError, match="detrend")
        ):
            peer.compute(peer.prepare(staged.operands))


def test_products_chain_and_shards_are_the_whole(tmp_path: Path) -> None:
    """The power of a filter bank's channels over time, of antennas that are computed apart."""
    chain = {
        "channels": {
            "kind": "channelise", "channels": 8, "taps": 2, "antennas": 4, "samples": 800,
        },
        "noise": {
            "kind": "dft", "power": True, "axis": "time", "length": 16, "average": 2,
            "input": {"samples": {"workload": "channels"}},
        },
    }  # fmt: skip
    whole = whole_as_its_shards(chain, tmp_path)
    x = np.moveaxis(whole["channels"].data, 2, -1)
    *_, expected = signal.spectrogram(
        x, 1e6 / 8, "boxcar", 16, 8, detrend=False, return_onesided=False
    )
    count = expected.shape[-1] // 2
    expected = expected[..., : 2 * count].reshape(*expected.shape[:-1], count, 2).mean(axis=-1)
    np.testing.assert_allclose(
        whole["noise"].data, np.moveaxis(expected, -2, -1), rtol=1e-9, atol=1e-18
    )


def test_what_streams_is_the_whole(tmp_path: Path) -> None:
    case = {"kind": "dft", **DRAWN, "batch": 61, "average": 5}
    whole = Ran(tmp_path / "whole", workload_of(case), cpu())
    parts = Ran(tmp_path / "parts", workload_of({**case, "device_memory": "60 KiB"}), cpu())
    for precision in ("fp32", "3xfp16"):
        piecewise, at_once = (one.result(precision=precision) for one in (parts, whole))
        assert piecewise.chunks > 1
        np.testing.assert_array_equal(piecewise.data, at_once.data)
