"""Filter banks on the CPU: against a direct sum in fp64, properties, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, ChanneliseProblem, channelise, pairs
from argand.channelise import api, cpu
from argand.runtime.cpu.numpy_calls import NumpyCalls
from scipy import signal

from tests.kernels.channelise.banks import bank

BANKS = {
    "two channels": bank(2, 1, 5),
    "one spectrum": bank(16, 4, 1, seed=1),
    "a prime": bank(37, 3, 9, spare=36, leading=(2,), seed=2),
    "critical": bank(64, 8, 40, leading=(2, 3), seed=3),
    "oversampled": bank(12, 5, 31, oversampling="4/3", seed=4),
    "twice": bank(32, 4, 20, oversampling=2, kind="complex128", seed=5),
    "many phases": bank(64, 6, 70, oversampling="32/27", spare=1, seed=6),
    "real": bank(32, 8, 12, kind="float32", leading=(2,), seed=7),
    "odd and real": bank(15, 4, 12, kind="float64", seed=8),
    "real, oversampled": bank(12, 4, 15, oversampling="3/2", kind="float32", seed=9),
    "int8 pairs": bank(32, 8, 9, kind="int8 pairs", leading=(3,), seed=10),
    "real int8": bank(32, 8, 9, kind="int8", oversampling="4/3", seed=11),
    "int16 pairs": bank(20, 3, 9, kind="int16 pairs", seed=12),
    "several blocks": bank(1024, 2, 80, seed=13),
}


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", BANKS)
def test_every_spectrum_is_the_direct_sum_within_the_bound(name: str, precision: str) -> None:
    one = BANKS[name]
    truth = one.spectra
    out = np.full(truth.shape, np.nan, PRECISIONS[precision].output)
    assert channelise(one.operand(), **one.options, precision=precision, out=out) is out
    assert one.excess(out, precision, "cpu") <= 1


@pytest.mark.each_value
@pytest.mark.parametrize("precision", ["fp32", "fp64", "3xfp16"])
@pytest.mark.parametrize("name", BANKS)
def test_conjugates_are_those_of_a_copy(name: str, precision: str) -> None:
    one, precise = BANKS[name], {"precision": precision}
    found = channelise(one.operand(), **(one.options | {"conjugate": True}), **precise)
    kind = "c16" if precision == "fp64" else "c8"
    copied = one.samples.conj().astype(kind) if np.iscomplexobj(one.samples) else one.operand()
    np.testing.assert_array_equal(found, channelise(copied, **one.options, **precise))
    assert replace(one, conjugate=True).excess(found, precision, "cpu") <= 1


@pytest.mark.parametrize("size", [1, 3 * 12 * 16, 1 << 18])
@pytest.mark.parametrize("tile", [0, 1 << 19])
@pytest.mark.parametrize("kind", ["complex128", "float64"])
def test_blocks_are_pieces_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, size: int, tile: int, kind: str
) -> None:
    """Blocks of several spectra, of which the last has fewer, and of rows give the same."""
    x = rng.standard_normal((5, 12 * 11, 2)).view(complex)[..., 0]
    x = (x if kind == "complex128" else x.real).astype(kind)
    whole = channelise(x, 12, taps=4, precision="fp64")
    monkeypatch.setattr(cpu, "_BLOCK_BYTES", size)
    monkeypatch.setattr(cpu, "_TILE_BYTES", tile)
    monkeypatch.setattr(api, "_CPU_CALLS", NumpyCalls())
    found = channelise(x, 12, taps=4, precision="fp64")
    np.testing.assert_allclose(found, whole, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("taps", "spectra", "is_kept"), [(4, 3, True), (1 << 14, 3, False), (4, 300, False)]
)
def test_banks_that_take_much_memory_or_a_small_part_of_a_call_are_not_kept(
    taps: int, spectra: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: NumpyCalls[Any] = NumpyCalls()
    monkeypatch.setattr(api, "_CPU_CALLS", calls)
    monkeypatch.setattr(cpu, "_BLOCK_BYTES", 4 * 12 * 16)
    channelise(np.ones(12 * (taps + spectra - 1), complex), 12, taps=taps, window="boxcar")
    assert len(calls.found) == is_kept


def test_a_coarse_precision_is_rounded() -> None:
    """Else the bounds above would hold for one that computes in fp64 whatever is asked."""
    one = BANKS["critical"]
    truth = one.spectra
    errors = [
        np.abs(channelise(one.operand(), **one.options, precision=name) - truth).max()
        for name in ("bf16", "fp16", "fp32", "fp64")
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 1e4 * errors[2] > 1e10 * errors[3]


@pytest.mark.parametrize("oversampling", [1, "4/3", 2])
def test_a_channel_is_mixed_down_filtered_and_decimated(oversampling: Any) -> None:
    """By scipy.signal.upfirdn: the definition, without a transform."""
    one = bank(24, 5, 30, oversampling=oversampling)
    found = channelise(one.operand(), **one.options, precision="fp64")
    x, h, hop = one.samples, one.coefficients, int(24 / Fraction(oversampling))
    for k in (0, 5, 12, 23):
        mixed = x * np.exp(-2j * np.pi * k / 24 * np.arange(len(x)))
        # The first output of upfirdn that has all taps is at sample len(h) - 1.
        late = np.concatenate([np.zeros(-(len(h) - 1) % hop), mixed])
        skipped = -(-(len(h) - 1) // hop)
        expected = signal.upfirdn(h[::-1], late, 1, hop)[skipped : skipped + len(found)]
        np.testing.assert_allclose(found[:, k], expected, atol=1e-13)


def test_an_oversampling_may_be_an_integer_of_eight_bits() -> None:
    x = np.arange(512, dtype=np.complex64)
    found = channelise(x, 128, 2, oversampling=np.int8(2))
    np.testing.assert_array_equal(found, channelise(x, 128, 2, oversampling=2))


def test_the_edge_of_a_channel_has_half_the_gain() -> None:
    x = np.exp(2j * np.pi * 3.5 / 32 * np.arange(32 * 40))
    found = channelise(x, 32, 8, precision="fp64")
    np.testing.assert_allclose(np.abs(found[:, 3:5]), 0.5, atol=2e-3)


def test_windows_are_designed_by_scipy() -> None:
    x = BANKS["critical"].operand()
    for window in ("hann", ("kaiser", 9.0)):
        h = signal.firwin(64 * 8, 1 / 64, window=window)
        np.testing.assert_array_equal(channelise(x, 64, window=window), channelise(x, 64, window=h))


def test_layouts_and_types_are_read_as_they_are() -> None:
    one = bank(16, 3, 7, leading=(2,))
    options = one.options | {"precision": "fp32"}
    truth = channelise(one.operand(), **options)
    strided = np.empty((one.given.shape[1], 2, 2), np.complex64)[..., 1].T
    strided[...] = one.given
    backward = one.given[:, ::-1].copy()[:, ::-1]
    for same in (strided, backward, one.given.astype(">c8"), one.given.astype("c16")):
        np.testing.assert_array_equal(channelise(same, **options), truth)
    records = bank(16, 3, 7, kind="int8 pairs").given
    fields = np.ascontiguousarray(records).view([("r", "i1"), ("i", "i1")])[..., 0]
    np.testing.assert_array_equal(
        channelise(fields, **one.options), channelise(pairs(records), **one.options)
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, complex(0, np.nan)])
@pytest.mark.parametrize("precision", ["fp64", "fp32", "3xfp16"])
def test_what_is_not_finite_is_in_its_spectra_alone(bad: complex, precision: str) -> None:
    one = bank(16, 3, 9, leading=(2,))
    one.given[1, 16 * 5 + 3] = bad
    found = np.isfinite(channelise(one.operand(), **one.options, precision=precision))
    assert found[0].all()
    assert not found[1, 3:6].any()
    assert found[1, :3].all()
    assert found[1, 6:].all()


@pytest.mark.parametrize("shape", [(0,), (47,), (0, 100), (3, 0)])
def test_without_samples_there_are_no_spectra(shape: tuple[int, ...]) -> None:
    count = (shape[-1] - 48) // 16 + 1 if shape[-1] >= 48 else 0
    assert channelise(np.zeros(shape, "c8"), 16, 3).shape == (*shape[:-1], count, 16)


def test_the_problem_knows_its_shape() -> None:
    problem = ChanneliseProblem((2,), 400, 12, 5, Fraction(4, 3), True, PRECISIONS["fp32"])
    assert (problem.hop, problem.spectra, problem.bins) == (9, 38, 7)
    assert problem.shape == channelise(np.zeros((2, 400)), 12, 5, oversampling="4/3").shape
    assert problem.flops > 0


X = BANKS["critical"].given
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "text": ({"x": np.array(["a"])}, TypeError, "x must be numbers"),
    "no axis": ({"x": np.complex64(1)}, ValueError, "x must have at least one axis"),
    "one channel": ({"channels": 1}, ValueError, "channels must be an integer from 2 on, got 1"),
    "half a channel": ({"channels": 2.5}, ValueError, "channels must be an integer"),
    "true": ({"channels": True}, ValueError, "channels must be an integer"),
    "no tap": ({"taps": 0}, ValueError, "taps must be an integer from 1 on, got 0"),
    "too long": ({"channels": 1 << 24}, ValueError, "channels times taps must be at most"),
    "below 1": ({"oversampling": "3/4"}, ValueError, "oversampling must be at least 1, got 3/4"),
    "no fraction": ({"oversampling": "much"}, ValueError, "oversampling must be a fraction"),
    "NaN": ({"oversampling": np.nan}, ValueError, "oversampling must be a fraction"),
    "parts of samples": ({"oversampling": "6/5"}, ValueError, "channels must be a multiple of 6"),
    "more than channels": ({"oversampling": 65}, ValueError, "channels must be a multiple of 65"),
    "window": ({"window": "hammng"}, ValueError, "window must be a window of scipy.signal"),
    "parameters": ({"window": ("kaiser",)}, ValueError, "window must be a window of scipy.signal"),
    "few coefficients": ({"window": np.ones(511)}, ValueError, "512 coefficients, taps times"),
    "infinite": ({"window": np.full(512, np.inf)}, ValueError, "window must be finite"),
    "complex": ({"window": np.full(512, 1j)}, TypeError, "window must hold real numbers"),
    "conjugate": ({"conjugate": 1}, TypeError, "conjugate must be true or false, got 1"),
    "precision": ({"precision": "7xint8"}, ValueError, "precision must be one of"),
    "out": ({"out": np.zeros((2, 3, 39, 64), "c8")}, ValueError, "out must have shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(name: str) -> None:
    changes, error, said = REFUSED[name]
    options: dict[str, Any] = {"x": X, "channels": 64, "taps": 8} | changes
    with pytest.raises(error, match=said):
        channelise(options.pop("x"), options.pop("channels"), **options)


def test_a_result_that_overlaps_the_samples_is_refused() -> None:
    x = np.zeros(64, "c8")
    with pytest.raises(ValueError, match="out must not overlap x"):
        channelise(x, 8, 1, out=x.reshape(8, 8))
    wide = np.zeros((8, 16), "c8")[:, ::2]
    with pytest.raises(
        ValueError, match=r"out must be C-contiguous, got strides \(128, 16\) of shape \(8, 8\)"
    ):
        channelise(x, 8, 1, out=wide)
