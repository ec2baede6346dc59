"""Beam power on the CPU: against a direct sum in fp64, and arguments that are refused."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Pairs, beam_power, pairs
from argand.beam_power import api, blocks
from argand.beam_power.problem import Detect
from argand.runtime.cpu.numpy_calls import NumpyCalls

from tests.kernels.beam_power.beams import EXACT_CASES, Beams, beams

CASES = {
    "one of each": beams(1, 1, 1),
    "odd": beams(5, 37, 211, 7, leading=(2, 3), seed=1),
    "shared weights": beams(9, 20, 1000, 16, leading=(4,), shared=True, seed=2),
    "one bin": beams(3, 17, 900, 900, seed=3, kind="complex128"),
    "a bin of parts": beams(3, 5, 18000, 9000, seed=10),
    "stokes": beams(4, 33, 130, 8, detect="stokes", leading=(3,), seed=4),
    "stokes of shared weights": beams(4, 5, 64, 3, detect="stokes", shared=True, seed=5),
    "int8": beams(6, 40, 96, 16, leading=(2,), taken="int8", seed=6),
    "int8 stokes": beams(6, 12, 50, 5, detect="stokes", taken="int8", seed=7),
    "fp16 pairs": beams(7, 30, 64, 4, taken="fp16", seed=8),
    "bf16 pairs": beams(7, 30, 64, 2, taken="bf16", seed=9),
}


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", CASES)
def test_power_is_the_direct_sum_within_the_bound(name: str, precision: str) -> None:
    one = CASES[name]
    problem = one.problem(precision)
    out = np.full(problem.shape, np.nan, problem.dtype)
    found = beam_power(one.weights, one.samples, precision=precision, out=out, **one.options)
    assert found is out
    off, bound = np.abs(found - one.power()), one.allowed(precision, "cpu")
    assert np.all(off <= bound)
    wrong = found.copy()
    wrong.flat[-1] += 3 * bound.flat[-1]
    assert not np.all(np.abs(wrong - one.power()) <= bound)


@pytest.mark.parametrize("name", EXACT_CASES)
def test_beams_of_integers_are_exact(name: str) -> None:
    """The two differ by a rounding of the result, and by the modulus' in the direct sum."""
    one = EXACT_CASES[name]
    out = np.full(one.problem("exact").shape, np.nan, np.float32)
    found = beam_power(one.weights, one.samples, precision="exact", out=out, **one.options)
    assert found is out
    np.testing.assert_allclose(found, one.power(), rtol=2.0**-23)


def test_the_smallest_integers_are_exact() -> None:
    """-128 has no negative of 8 bits."""
    w, x = (pairs(np.full(shape, -128, np.int8)) for shape in ((2, 512, 2), (512, 3, 2)))
    found = beam_power(w, x, precision="exact")
    np.testing.assert_array_equal(found, np.full((2, 3), 2.0**48))


def test_exact_beams_of_other_operands_are_refused() -> None:
    one = CASES["int8"]
    with pytest.raises(ValueError, match=r"pairs of int8, got \['complex64', 'int8'\]"):
        beam_power(one.weights, one.samples, precision="exact")


def test_a_coarse_precision_is_rounded() -> None:
    """Else the bounds above would hold for one that computes in fp64 whatever is asked."""
    one = CASES["odd"]
    truth = one.power()
    errors = [
        np.abs(beam_power(one.weights, one.samples, precision=name, **one.options) - truth).max()
        for name in ("bf16", "tf32", "3xtf32", "fp64")
    ]
    assert errors[0] > 2 * errors[1] > 2e2 * errors[2] > 2e4 * errors[3]


def test_blocks_are_pieces_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in (CASES["odd"], CASES["stokes"], CASES["int8"]):
        whole = beam_power(one.weights, one.samples, precision="fp64", **one.options)
        for values in (1, 100, 5000):
            monkeypatch.setitem(blocks._BLOCK_VALUES, "numpy", values)
            monkeypatch.setattr(api, "_CPU_CALLS", NumpyCalls())
            found = beam_power(one.weights, one.samples, precision="fp64", **one.options)
            np.testing.assert_allclose(found, whole, rtol=1e-13, atol=1e-11)


@pytest.mark.parametrize("size", [1, 1 << 10, 1 << 13])
@pytest.mark.parametrize("detect", ["power", "stokes"])
def test_parts_are_pieces_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, detect: Detect, size: int
) -> None:
    """Some matrices at a time, or bins of one, into contiguous memory or any."""
    w, x = (
        rng.standard_normal((3, 2, *shape, 2)).view(complex)[..., 0] for shape in ((5, 4), (4, 47))
    )
    whole = beam_power(w, x, detect=detect, integrate=3)
    monkeypatch.setitem(blocks._BLOCK_VALUES, "numpy", 1)
    monkeypatch.setattr(blocks, "_PART_BYTES", size)
    monkeypatch.setattr(blocks, "in_blocks", None)
    monkeypatch.setattr(api, "_CPU_CALLS", NumpyCalls())
    out = np.full((*whole.shape, 2), np.nan)[..., 0]
    for found in (
        beam_power(w, x, detect=detect, integrate=3),
        beam_power(w, x, detect=detect, integrate=3, out=out),
    ):
        np.testing.assert_allclose(found, whole, rtol=1e-13, atol=1e-12)


def test_a_long_bin_takes_the_memory_of_a_part() -> None:
    """Its beams would be 64 MB; a part of them is 2."""
    x = np.broadcast_to(np.complex64(1), (2, 1 << 17))
    tracemalloc.start()
    found = beam_power(np.ones((64, 2), np.complex64), x, integrate=1 << 17, precision="fp32")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(found, 4.0 * (1 << 17))
    assert peak < 16e6


@pytest.mark.parametrize("precision", ["fp64", "3xtf32", "fp16"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, complex(0, np.nan)])
def test_what_is_not_finite_stays_in_its_bin(bad: complex, precision: str) -> None:
    one = beams(3, 5, 35, 8, leading=(2,))
    one.samples[1, 2, 9] = one.samples[0, 0, 33] = bad
    found = beam_power(one.weights, one.samples, precision=precision, **one.options)
    expected = np.ones((2, 3, 4), bool)
    expected[1, :, 1] = False
    np.testing.assert_array_equal(np.isfinite(found), expected)


def test_layouts_and_types_are_read_as_they_are() -> None:
    one = CASES["one bin"]
    truth = beam_power(one.weights, one.samples, precision="fp64", **one.options)
    turned = np.ascontiguousarray(one.samples.T).T
    for same in (turned, one.samples.astype(">c16"), np.repeat(one.samples, 2, axis=1)[:, ::2]):
        found = beam_power(one.weights, same, precision="fp64", **one.options)
        np.testing.assert_allclose(found, truth, rtol=1e-13)
    held = CASES["int8"]
    records = held.samples.array.view([("r", "i1"), ("i", "i1")])[..., 0]
    np.testing.assert_array_equal(
        beam_power(held.weights, records, **held.options),
        beam_power(held.weights, held.samples, **held.options),
    )


@pytest.mark.parametrize(
    ("shape", "integrate"), [((0, 4, 8), 2), ((3, 0, 8), 2), ((3, 4, 0), 2), ((3, 4, 8), 9)]
)
def test_empty_arguments_have_no_power(shape: tuple[int, int, int], integrate: int) -> None:
    beam, antennas, samples = shape
    w, x = np.ones((beam, antennas)), np.ones((2, antennas, samples))
    found = beam_power(w, x, integrate=integrate)
    np.testing.assert_array_equal(found, np.zeros((2, beam, samples // integrate)))


W, X = np.ones((2, 3, 4)), np.ones((2, 4, 10))
REFUSED: dict[str, tuple[Any, Any, dict[str, Any], type[Exception], str]] = {
    "one axis": (W[0, 0], X, {}, ValueError, r"weights must have shape \(..., beam, antenna\)"),
    "samples of one axis": (W, X[0, 0], {}, ValueError, "samples must have shape"),
    "other antennas": (W, X[:, :3], {}, ValueError, "must have the same antennas, got 4 and 3"),
    "leading axes": (W, np.ones((3, 4, 10)), {}, ValueError, "do not broadcast"),
    "text": (W, np.full(X.shape, "a"), {}, TypeError, "samples must be numbers"),
    "detect": (W, X, {"detect": "phase"}, ValueError, r"detect must be one of \['power', 'sto"),
    "integrate 0": (W, X, {"integrate": 0}, ValueError, "integrate must be an integer of 1"),
    "integrate 1.5": (W, X, {"integrate": 1.5}, ValueError, "integrate must be an integer of 1"),
    "integrate True": (W, X, {"integrate": True}, ValueError, "integrate must be an integer of 1"),
    "one polarization": (W[:1], X[:1], {"detect": "stokes"}, ValueError, "two polarizations"),
    "none": (W[0], X[0], {"detect": "stokes"}, ValueError, "two polarizations"),
    "precision": (W, X, {"precision": "7xint8"}, ValueError, "precision must be one of"),
    "out": (W, X, {"out": np.ones((2, 3, 9))}, ValueError, r"out must have shape \(2, 3, 10\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(name: str) -> None:
    w, x, options, error, said = REFUSED[name]
    with pytest.raises(error, match=said):
        beam_power(w, x, **options)


def test_out_must_not_overlap_the_operands() -> None:
    x = np.ones((2, 8), np.complex64)
    out = x.view(np.float32)[:1, :8]
    with pytest.raises(ValueError, match="out must not overlap weights or samples"):
        beam_power(np.ones((1, 2), np.complex64), x, out=out, precision="fp32")


def test_pairs_of_any_format_are_taken() -> None:
    one = beams(3, 4, 16, 4)
    parts = np.random.default_rng(0).integers(-3000, 3000, (4, 16, 2)).astype(np.int16)
    given: Pairs = pairs(parts)
    held = Beams(one.weights, given, 4)
    found = beam_power(held.weights, given, integrate=4, precision="fp32")
    assert np.all(np.abs(found - held.power()) <= held.allowed("fp32", "cpu"))
