"""Spectral estimates on the CPU: against scipy.signal in fp64, properties, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, pairs, spectrum
from scipy import signal

from tests.kernels.spectrum.signals import SIGNALS, drawn


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", SIGNALS)
def test_every_bin_is_scipys_within_the_bound(name: str, precision: str) -> None:
    one = SIGNALS[name]
    out = np.full(one.power.shape, np.nan, PRECISIONS[precision].real_output)
    found = spectrum(one.operand(), one.length, **one.options, precision=precision, out=out)
    assert found is out
    accuracy = one.assessed(out, precision, "cpu")
    assert accuracy.verdict in ("verified", "unproven"), accuracy.reason
    assert accuracy.verified or PRECISIONS[precision].u > 2.0**-12


@pytest.mark.parametrize("name", SIGNALS)
def test_fp64_is_scipys(name: str) -> None:
    one = SIGNALS[name]
    found = spectrum(one.operand(), one.length, **one.options, precision="fp64")
    scale = one.power.max(axis=-1, keepdims=True)
    np.testing.assert_allclose(found / scale, one.power / scale, atol=1e-13)


@pytest.mark.parametrize("name", ["spectrogram", "whole", "real", "strong tone", "less lines"])
@pytest.mark.parametrize("precision", ["fp64", "fp32", "3xfp16", "fp16"])
def test_a_wrong_bin_is_reported(name: str, precision: str) -> None:
    one = SIGNALS[name]
    found = spectrum(one.operand(), one.length, **one.options, precision=precision)
    place = (*[0] * (found.ndim - 2), found.shape[-2] // 2, found.shape[-1] // 3)
    for wrong in (0.0, -found[place], found[place] * 1.2, np.nan):
        planted = found.copy()
        planted[place] = wrong
        assert one.assessed(planted, precision, "cpu").verdict in ("wrong", "suspect"), wrong
    moved = np.roll(found, 1, axis=-1)
    assert one.assessed(moved, precision, "cpu").verdict in ("wrong", "suspect")


def test_a_coarse_precision_is_rounded_and_raises_the_floor() -> None:
    one = SIGNALS["strong tone"]
    floors = [
        one.assessed(
            spectrum(one.operand(), one.length, **one.options, precision=name), name, "cpu"
        ).measures["noise_floor_db"] or np.inf
        for name in ("bf16", "fp16", "fp32", "fp64")
    ]  # fmt: skip
    assert floors == sorted(floors, reverse=True)
    assert -90 < floors[0] < -50
    assert -180 < floors[2] < -140
    assert floors[3] < -300


def test_scalloping_is_the_windows() -> None:
    for window, lost in (("boxcar", 3.92), ("hann", 1.42), ("flattop", 0.01)):
        one = drawn(64, 20, window=window)
        found = spectrum(one.operand(), 64, window=window)
        accuracy = one.assessed(found, "fp32", "cpu")
        assert accuracy.measures["scalloping_db"] == pytest.approx(lost, abs=0.01)


def test_a_tone_at_a_centre_has_its_power_and_noise_its_density() -> None:
    x = 3 * np.exp(2j * np.pi * 5 / 32 * np.arange(4096))
    found = spectrum(x, 32, average="all", scaling="spectrum", precision="fp64")
    np.testing.assert_allclose(found[0, 5], 9)
    noise = np.random.default_rng(0).standard_normal(1 << 18)
    density = spectrum(noise, 64, average="all", sample_rate=1e3)
    np.testing.assert_allclose(density[0, 1:-1], 2 / 1e3, rtol=0.1)
    both = spectrum(noise, 64, average="all", sample_rate=1e3, onesided=False)
    np.testing.assert_allclose(both[0, 1:], 1 / 1e3, rtol=0.1)


def test_a_whole_mean_is_welchs() -> None:
    x = drawn(48, 100, kind="float64").given
    _, expected = signal.welch(x, 2.0, "hamming", 48, 16, detrend=False)
    found = spectrum(
        x, 48, overlap=16, window="hamming", average="all", sample_rate=2.0, precision="fp64"
    )
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)


def test_welchs_default_is_a_constant_trend_and_a_ramp_leaves_its_noise() -> None:
    x = drawn(64, 60, kind="float64", rise=0.5).given
    for detrend in ("constant", "linear"):
        _, expected = signal.welch(x, nperseg=64, detrend=detrend)
        found = spectrum(x, 64, average="all", detrend=detrend, precision="fp64")
        np.testing.assert_allclose(found[0], expected, rtol=1e-9, atol=1e-12)
    assert not spectrum(x, 1, overlap=0, window="boxcar", detrend="linear").any()
    ramp = 1e6 + 10 * np.arange(5000.0)
    left = spectrum(ramp, 128, average="all", detrend="linear")
    assert left.max() < 1e-12 * spectrum(ramp, 128, average="all", detrend="constant").max()


def test_a_trend_that_was_left_is_reported() -> None:
    one = SIGNALS["less means"]
    given = one.options | {"detrend": None}
    found = spectrum(one.operand(), one.length, **given)
    assert one.assessed(found, "fp32", "cpu").verdict == "wrong"


def test_layouts_and_types_are_read_as_they_are() -> None:
    one = drawn(16, 7, leading=(2,))
    truth = spectrum(one.operand(), 16)
    strided = np.empty((one.given.shape[1], 2, 2), np.complex64)[..., 1].T
    strided[...] = one.given
    backward = one.given[:, ::-1].copy()[:, ::-1]
    for same in (strided, backward, one.given.astype(">c8")):
        np.testing.assert_array_equal(spectrum(same, 16), truth)
    wide = one.given.astype("c16")
    np.testing.assert_array_equal(spectrum(wide, 16, precision="fp32"), truth)
    np.testing.assert_array_equal(spectrum(wide, 16), spectrum(wide, 16, precision="fp64"))
    np.testing.assert_array_equal(spectrum(wide, 16, out=np.empty_like(truth)), truth)
    records = drawn(16, 7, kind="int8 pairs").given
    fields = np.ascontiguousarray(records).view([("r", "i1"), ("i", "i1")])[..., 0]
    np.testing.assert_array_equal(spectrum(fields, 16), spectrum(pairs(records), 16))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("precision", ["fp64", "fp32", "3xfp16"])
def test_what_is_not_finite_is_in_its_groups_alone(bad: float, precision: str) -> None:
    one = drawn(16, 12, overlap=8, average=2, leading=(2,))
    one.given[1, 45] = bad  # in segments 4 and 5
    found = np.isfinite(spectrum(one.operand(), 16, average=2, precision=precision))
    assert found[0].all()
    assert not found[1, 2].any()
    assert np.delete(found[1], 2, axis=0).all()
    assert one.assessed(np.where(found, one.power, np.nan), precision, "cpu").verdict == "verified"


@pytest.mark.parametrize("shape", [(0,), (15,), (0, 100), (3, 0)])
def test_without_samples_there_are_no_groups(shape: tuple[int, ...]) -> None:
    for average in (1, "all"):
        found = spectrum(np.zeros(shape, "c8"), 16, average=average)
        groups = (1 if average == "all" else 11) if shape[-1] >= 16 else 0
        assert found.shape == (*shape[:-1], groups, 16)


X = np.zeros((2, 200), "c8")
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "text": ({"x": np.array(["a"])}, TypeError, "x must be numbers"),
    "no axis": ({"x": np.complex64(1)}, ValueError, "x must have at least one axis"),
    "no length": ({"length": 0}, ValueError, "length must be from 1 to"),
    "too long": ({"length": 1 << 27}, ValueError, "length must be from 1 to"),
    "half a sample": ({"length": 2.5}, ValueError, "length must be an integer, got 2.5"),
    "true": ({"length": True}, ValueError, "length must be an integer"),
    "all of it": ({"overlap": 64}, ValueError, "overlap must be from 0 to 63, got 64"),
    "negative": ({"overlap": -1}, ValueError, "overlap must be from 0 to 63"),
    "no segment": ({"average": 0}, ValueError, "average must be from 1 on, or 'all', got 0"),
    "every": ({"average": "every"}, ValueError, "average must be an integer, or 'all'"),
    "window": ({"window": "hannig"}, ValueError, "window must be a window of scipy.signal"),
    "parameters": ({"window": ("kaiser",)}, ValueError, "window must be a window of scipy.signal"),
    "few": ({"window": np.ones(63)}, ValueError, "64 coefficients, as many as a segment"),
    "infinite": ({"window": np.full(64, np.inf)}, ValueError, "window must be finite"),
    "complex": ({"window": np.full(64, 1j)}, TypeError, "window must hold real numbers"),
    "zero": ({"window": np.zeros(64)}, ValueError, "window must not be zero everywhere"),
    "sum of 0": (
        {"window": np.sin(np.pi * np.arange(64) / 32), "scaling": "spectrum"}, ValueError,
        "window must have a sum other than 0",
    ),
    "trend": ({"detrend": "quadratic"}, ValueError, "detrend must be one of"),
    "false": ({"detrend": False}, ValueError, "detrend must be one of .* or None, got False"),
    "scaling": ({"scaling": "power"}, ValueError, "scaling must be one of"),
    "rate": ({"sample_rate": 0}, ValueError, "sample_rate must be a positive number, got 0"),
    "NaN": ({"sample_rate": np.nan}, ValueError, "sample_rate must be a positive number"),
    "sides": ({"onesided": True}, ValueError, "onesided must be false or None for complex"),
    "conjugate": ({"conjugate": 1}, TypeError, "conjugate must be true or false, got 1"),
    "no side": ({"onesided": 1}, TypeError, "onesided must be true or false, got 1"),
    "precision": ({"precision": "7xint8"}, ValueError, "precision must be one of"),
    "out": ({"out": np.zeros((2, 5, 64), "c8")}, ValueError, "out must have shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(name: str) -> None:
    changes, error, said = REFUSED[name]
    options: dict[str, Any] = {"x": X, "length": 64} | changes
    with pytest.raises(error, match=said):
        spectrum(options.pop("x"), options.pop("length"), **options)


def test_a_result_that_overlaps_the_samples_is_refused() -> None:
    x = np.zeros(64, "f4")
    with pytest.raises(ValueError, match="out must not overlap x"):
        spectrum(x, 8, overlap=0, out=x[:40].reshape(8, 5))
    with pytest.raises(ValueError, match="out must be C-contiguous"):
        spectrum(x, 8, overlap=0, out=np.zeros((8, 10), "f4")[:, ::2])
