"""Filter banks as a workload: what is staged, computed, verified, delivered, chained, refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from argand import PRECISIONS
from matplotlib.figure import Figure
from scipy import signal
from test_chains import whole_as_its_shards

from tests.verdicts import COARSE, is_right
from tests.workflow.workloads.on_cpu import computed
from tests.workflow.workloads.own_samples import samples_of, write_samples
from workflow.files.input_error import InputError
from workflow.storage.products import check_product
from workflow.workloads.channelise import Channelise, ChanneliseCase

DRAWN = {"channels": 32, "taps": 8, "antennas": 2, "samples": 32 * 60, "sample_rate_hz": 3.2e6}
TONE = {"frequency": 3 / 32, "amplitude": 1.0}


def bank(**parameters: Any) -> Channelise:
    return Channelise("c", ChanneliseCase.model_validate({"kind": "channelise", **parameters}), 11)


def assessed(one: Channelise, precision: str, change: Any = lambda result: result) -> Any:
    staged, result = computed(one, precision)
    reference = one.reference(staged)
    return one.assess(staged, reference, change(result), PRECISIONS[precision], "cpu")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return write_samples(tmp_path)


def source(path: Path, **changes: Any) -> dict[str, Any]:
    return {"channels": 16, "taps": 4, **samples_of(path, **changes)}


@pytest.mark.parametrize("oversampling", [1, "4/3"])
def test_tones_are_where_they_were_planted(oversampling: Any) -> None:
    one = bank(**DRAWN, tones=[TONE], noise=0.0, centre_hz=150e6, oversampling=oversampling)
    product = one.product(*computed(one))
    power = np.square(np.abs(product.data)).mean(axis=(0, 1, 2))
    frequency = product.coordinates["frequency"]
    assert frequency.units == "Hz"
    assert frequency.values[power.argmax()] == pytest.approx(150e6 + 3.2e6 * 3 / 32)
    np.testing.assert_allclose(power.max(), 1, rtol=1e-6)
    time = product.coordinates["time"]
    step = 32 if oversampling == 1 else 24
    np.testing.assert_allclose(np.diff(time.values), step / 3.2e6)
    assert time.values[0] == pytest.approx((32 * 8 - 1) / 2 / 3.2e6)
    assert product.axes == ("polarization", "antenna", "time", "frequency")
    assert product.data.shape == one.result_shape(one.outline())


def test_channels_may_be_shifted_and_real_samples_have_half() -> None:
    banks = bank(**DRAWN), bank(**DRAWN, shift=True)
    plain, shifted = (one.product(*computed(one)) for one in banks)
    np.testing.assert_array_equal(np.fft.fftshift(plain.data, axes=-1), shifted.data)
    where = shifted.coordinates["frequency"].values
    np.testing.assert_allclose(where, np.arange(-16, 16) * 1e5)
    real = bank(**DRAWN, real=True, tones=[TONE], noise=0.0)
    product = real.product(*computed(real))
    assert product.data.shape[-1] == 17
    power = np.square(np.abs(product.data)).mean(axis=(0, 1, 2))
    assert (power.argmax(), power.max()) == (3, pytest.approx(0.25, rel=1e-3))
    check_product(product)
    axes = Figure().subplots()
    real.picture(product, axes)
    assert axes.get_xlabel() == "frequency (MHz)"
    outline = real.product_outline(real.outline())
    assert (outline.data.shape, outline.axes) == (product.data.shape, product.axes)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("more", [{}, {"real": True, "oversampling": 2}])
def test_leakage_and_ripple_are_measured(precision: str, more: dict[str, Any]) -> None:
    accuracy = assessed(bank(**DRAWN, **more, tones=[TONE]), precision)
    assert is_right(accuracy, precision), accuracy.reason
    if precision in COARSE:
        return  # what is measured is the arithmetic's
    # The stop band of a prototype of hamming is below -50 dB, its pass band flat to 0.1 dB.
    least = signal.firwin(256, 1 / 32)
    response = np.abs(np.fft.rfft(least, 1 << 14))
    stop = 20 * np.log10(response[(1 << 14) // 32 :].max())
    slack = {"bf16": 12.0, "fp16": 1.0, "tf32": 1.0}.get(precision, 0.5)
    assert stop - 1 < accuracy.measures["stopband_leakage_db"] < stop + slack
    passed = response[: (1 << 14) // 32 // 4 + 1]
    ripple = 20 * np.log10(passed.max() / passed.min())
    assert ripple - 1e-3 < accuracy.measures["gain_ripple_db"] < 0.2


def test_the_arithmetic_is_part_of_leakage_and_ripple() -> None:
    """A channel that leaks into another one, and one of another gain, fail verification.

    The gain is compared with that of a channel of a tenth of its power.
    """

    def leaking(result: Any) -> Any:
        result[..., 20] += 0.1 * np.roll(result[..., 3], 1, axis=-1)
        return result

    def louder(result: Any) -> Any:
        result[..., 3] *= 1.1
        return result

    one = bank(**DRAWN, tones=[TONE, {"frequency": 7 / 32, "amplitude": 0.3}])
    leaks, loud = assessed(one, "fp32", leaking), assessed(one, "fp32", louder)
    assert (leaks.verdict, loud.verdict) == ("wrong", "wrong")
    assert loud.measures["gain_ripple_db"] > 20 * np.log10(1.09)
    assert (
        leaks.measures["stopband_leakage_db"]
        > assessed(one, "fp32").measures["stopband_leakage_db"] + 20
    )


def test_a_file_of_ones_own_is_channelised(own: Path) -> None:
    one = bank(**source(own, sample_rate_hz=1e3))
    one.check()
    staged, found = computed(one)
    with h5py.File(own) as file:
        x = file["x"]["r"] + 1j * file["x"]["i"]
    h = signal.firwin(64, 1 / 16)
    for s, k in ((0, 0), (5, 3), (20, 15)):
        n = 16 * s + np.arange(64)
        expected = (h[:, None] * x[n] * np.exp(-2j * np.pi * k * n / 16)[:, None]).sum(axis=0)
        np.testing.assert_allclose(found[..., s, k].ravel(), expected, atol=1e-10)
    product = one.product(staged, found)
    assert product.axes == ("antenna", "time", "frequency")
    assert product.coordinates["frequency"].values[1] == pytest.approx(1e3 / 16)
    assert assessed(one, "fp32").verified
    given = bank(**source(own, samples="real", coefficients="weights"), real=True)
    given.check()
    assert assessed(given, "3xfp16").verified
    assert given.product(*computed(given)).coordinates["frequency"].units == "cycles/sample"
    back = {"samples": "real", "coordinates": {"time": {"step_s": -1e-3}}}
    turned = bank(**source(own, **back), real=True, centre_hz=5e3)
    frequency = turned.product_outline(turned.outline()).coordinates["frequency"].values
    np.testing.assert_allclose(frequency, 5e3 + np.arange(9) * 62.5)  # either sign is one bin


def test_mistakes_are_reported_before_a_job_starts(own: Path) -> None:
    time = {"time": {"dataset": "t", "units": "s"}}
    known = {"values": [5, 6, 7], "units": "Hz", "axis": "antenna"}
    coarse = {"time": {"step_s": 1.0}, "frequency": known}
    for changes, more, said in (
        ({"coordinates": coarse}, {"centre_hz": 1e6}, "centre_hz: the samples are of 3 channels"),
        ({}, {"taps": 40}, "at least channels times taps, 640, along time, got 400"),
        ({"coefficients": "weights"}, {"taps": 2}, "input.coefficients must have 32 values"),
        ({"coordinates": time}, {}, "must have equal steps"),
        ({}, {"centre_hz": 1e6}, "centre_hz: the samples' time must be in one of .'s', 'ms',"),
        ({"samples": "real"}, {}, "must be"),
        ({}, {"real": True}, "must be"),
    ):
        with pytest.raises(InputError, match=said):
            bank(**source(own, **changes) | more).check()
    for window in ("hammng", ["kaiser"]):
        with pytest.raises(ValueError, match=r"window: must be a window of scipy\.signal"):
            bank(**DRAWN, window=window).check()


def test_nan_is_refused_or_let_through(own: Path) -> None:
    with h5py.File(own, "a") as file:
        file["real"][100, 1] = np.nan
    real = source(own, samples="real")
    with pytest.raises(InputError, match="1 NaN"):
        bank(**real, real=True).stage()
    one = bank(**real, real=True, allow_nonfinite=True)
    found = np.isfinite(computed(one, "fp32")[1])
    assert not found[1, 3:7].any()
    assert found.sum() == found.size - 4 * 9
    accuracy = assessed(one, "fp32")
    assert accuracy.verified, accuracy.reason
    assert assessed(one, "fp32", lambda x: np.nan_to_num(x)).verdict == "wrong"


def test_products_are_correlated_and_shards_are_the_whole(tmp_path: Path) -> None:
    """Channels become the frequency of a correlation; antennas are computed apart."""
    chain = {
        "channels": {"kind": "channelise", **DRAWN, "antennas": 4, "centre_hz": 150e6},
        "visibilities": {"kind": "correlate", "input": {"voltages": {"workload": "channels"}}},
    }
    whole = whole_as_its_shards(chain, tmp_path)
    x, found = whole["channels"].data[0], whole["visibilities"]
    assert x.shape == (4, 53, 32)
    expected = np.einsum("atf,btf->fab", x, x.conj())
    np.testing.assert_allclose(found.data[:, 0], expected, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_array_equal(
        found.coordinates["frequency"].values, whole["channels"].coordinates["frequency"].values
    )
