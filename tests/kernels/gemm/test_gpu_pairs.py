"""Pairs on a GPU: conversions bit for bit the CPU's, and products of pairs at every precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, Pairs, gemm, pairs, to_pairs
from argand.gemm.pairs import PAIR_FORMATS
from argand.precision import HALF_FORMATS
from test_pairs import every_pattern, random_pairs

from tests.kernels.gemm.product_cases import assert_within, magnitude, normal, summation
from workflow.accuracy.bounds import rounded_once
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference
from workflow.accuracy.ties import ties

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]


def on_gpu(cp: Any, x: Any) -> Any:
    return Pairs(cp.asarray(x.array), x.format) if isinstance(x, Pairs) else cp.asarray(x)


def assert_same_bits(found: Any, expected: Array) -> None:
    """Equal, NaN for NaN, whichever NaN it is."""
    np.testing.assert_array_equal(found.get(), expected)


@pytest.mark.parametrize("format", HALF_FORMATS)
def test_every_half_there_and_back(cp: Any, format: str) -> None:
    halves, _ = every_pattern(format)
    there = on_gpu(cp, halves)
    assert there.on_gpu
    wide = there.to_complex64()
    assert wide.dtype == np.complex64
    assert_same_bits(wide, halves.to_complex64())
    assert_same_bits(to_pairs(wide, format).to_complex64(), halves.to_complex64())


@pytest.mark.parametrize("format", PAIR_FORMATS)
def test_shapes_and_strides(cp: Any, rng: np.random.Generator, format: str) -> None:
    whole = random_pairs(rng, format, 6, 8, 10)
    there = on_gpu(cp, whole)
    for index in (np.s_[:], np.s_[::2, ::-1, 1::3], np.s_[:, 3], np.s_[2:2], np.s_[1:, 1:, 1:]):
        part = Pairs(there.array[index], format)
        expected = Pairs(whole.array[index], format).to_complex64()
        assert part.shape == expected.shape
        assert_same_bits(part.to_complex64(), expected)
    turned = Pairs(cp.swapaxes(there.array, -2, -3), format)
    assert_same_bits(turned.to_complex64(), np.swapaxes(whole.to_complex64(), -1, -2))


@pytest.mark.parametrize("format", HALF_FORMATS)
def test_rounding_is_that_of_the_cpu(cp: Any, rng: np.random.Generator, format: str) -> None:
    """Any bits, the ties among them, and views."""
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint32)
    bits[::7] &= np.uint32(0xFFFFF000)  # ties of fp16
    bits[::5] &= np.uint32(0xFFFF8000)  # ties of bf16
    x = bits.view(np.complex64).reshape(100, 1000)
    for view in (np.s_[:], np.s_[::2, ::-3]):
        found = to_pairs(cp.asarray(x)[view], format)
        expected = to_pairs(x[view], format)
        nan = np.isnan(expected.to_complex64().view(np.float32)).reshape(expected.array.shape)
        found_bits, expected_bits = (y.view(np.uint16) for y in (found.array.get(), expected.array))
        np.testing.assert_array_equal(found_bits[~nan], expected_bits[~nan])
        assert np.isnan(found.to_complex64().get().view(np.float32).reshape(nan.shape)[nan]).all()


def test_pairs_of_cupy_arrays(cp: Any) -> None:
    assert pairs(cp.zeros((3, 2), cp.int8)).format == "int8"
    assert pairs(cp.zeros((3, 2), cp.uint16), "bf16").format == "bf16"
    with pytest.raises(ValueError, match='need format="bf16"'):
        pairs(cp.zeros((3, 2), cp.uint16))
    with pytest.raises(ValueError, match="got complex64"):
        pairs(cp.zeros((3, 2), cp.complex64))


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("format", PAIR_FORMATS)
@pytest.mark.parametrize(("op_a", "op_b"), [("N", "N"), ("C", "T"), ("T", "C")])
def test_products_of_pairs(
    cp: Any, rng: np.random.Generator, precision: str, format: str, op_a: str, op_b: str
) -> None:
    """Against the model, which multiplies the same operands, and against fp64 within the bound."""
    m, n, k = 37, 45, 83
    a = random_pairs(rng, format, 2, *((m, k) if op_a == "N" else (k, m)))
    b = random_pairs(rng, format, *((k, n) if op_b == "N" else (n, k)))
    c = random_pairs(rng, format, 2, m, n)
    how: dict[str, Any] = {"op_a": op_a, "op_b": op_b, "alpha": 0.5 - 2j, "beta": 1.5j}
    wide = [x.to_complex64() for x in (a, b, c)]
    there = [on_gpu(cp, x) for x in (a, b, c)]
    found = gemm(*there, precision=precision, **how).get()
    assert found.dtype == PRECISIONS[precision].output
    model = gemm(a, b, c, precision=precision, **how)
    assert_within(found, model, summation(k, precision) * magnitude(*wide, **how))
    reference = product_reference(*wide, **how)
    accuracy = assess_product(reference, found, PRECISIONS[precision], backend="cuda")
    assert accuracy.verified, accuracy.reason


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("format", PAIR_FORMATS)
def test_pairs_beside_an_array(
    cp: Any, rng: np.random.Generator, precision: str, format: str
) -> None:
    a, b = random_pairs(rng, format, 3, 20, 30), normal(rng, 30, 17)
    wide = a.to_complex64()
    # Integers of 16 bits have ties, which a GPU may round the other way.
    moved = ties(wide, PRECISIONS[precision], "cuda") @ np.abs(b)
    allowed = summation(30, precision) * magnitude(wide, b, None) + 2 * moved
    found = gemm(on_gpu(cp, a), cp.asarray(b), precision=precision).get()
    assert_within(found, gemm(wide, b, precision=precision), allowed)
    turned = gemm(cp.asarray(b.T.copy()), on_gpu(cp, a), op_b="T", precision=precision).get()
    assert_within(np.swapaxes(turned, -1, -2), gemm(wide, b, precision=precision), allowed)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("format", HALF_FORMATS)
def test_small_integers_are_exact(
    cp: Any, rng: np.random.Generator, precision: str, format: str
) -> None:
    """Products and sums below 2^24 of integers that every format holds."""
    a, b = (
        (rng.integers(-8, 9, shape) + 1j * rng.integers(-8, 9, shape)).astype(np.complex64)
        for shape in ((3, 130, 200), (3, 200, 70))
    )
    there = (on_gpu(cp, to_pairs(x, format)) for x in (a, b))
    np.testing.assert_array_equal(gemm(*there, precision=precision).get(), a @ b)


@pytest.mark.pairwise
@pytest.mark.parametrize("format", HALF_FORMATS)
@pytest.mark.parametrize("how", [{}, {"alpha": 0.5j, "beta": -2}, {"alpha": 0, "beta": 1}])
@pytest.mark.parametrize("shape", [(1, 1, 1), (37, 45, 83), (128, 64, 256), (3, 4, 0)])
def test_complex_half(
    cp: Any, rng: np.random.Generator, format: str, how: dict[str, Any], shape: tuple[int, ...]
) -> None:
    """A sum that is off by the summation's slack is rounded once."""
    m, n, k = shape
    a, b, c = (random_pairs(rng, format, *dims) for dims in ((m, k), (k, n), (m, n)))
    wide = [x.to_complex64() for x in (a, b, c)]
    model = gemm(a, b, c, precision=format, **how)
    out = Pairs(cp.full((m, n, 2), 0x7FFF, cp.uint16).view(PAIR_FORMATS[format]), format)  # NaN
    there = [on_gpu(cp, x) for x in (a, b, c)]
    assert gemm(*there, precision=format, output="complex-half", out=out, **how) is out
    slack = summation(k, format) * magnitude(*wide, **how)
    found = out.to_complex64().get()
    size = np.maximum(np.abs(model.real), np.abs(model.imag))
    assert_within(found, model, rounded_once(PRECISIONS[format].operand, slack, size))
    fresh = gemm(*there, precision=format, output="complex-half", **how)
    assert fresh.format == format
    np.testing.assert_array_equal(fresh.array.get(), out.array.get())
    own = gemm(*there, precision=format, output="complex-half", out=there[2], **how)
    assert own is there[2]
    np.testing.assert_array_equal(own.array.get(), out.array.get())


@pytest.mark.parametrize("format", HALF_FORMATS)
def test_complex_half_into_any_place(cp: Any, rng: np.random.Generator, format: str) -> None:
    """Whole words are written where they are; what is not one, or is read, by way of a copy."""
    m, n, k = 37, 45, 45
    a, b = (on_gpu(cp, random_pairs(rng, format, *dims)) for dims in ((m, k), (k, n)))
    expected = gemm(a, b, precision=format, output="complex-half").array.get()
    dtype = PAIR_FORMATS[format]

    def check(x: Pairs, y: Pairs, out: Any) -> None:
        place = Pairs(out, format)
        assert gemm(x, y, precision=format, output="complex-half", out=place) is place
        np.testing.assert_array_equal(out.get(), expected)

    for _ in range(3):  # the later ones are from the call cache
        whole = cp.full((m + 3, n + 4, 2), 7, dtype)
        check(a, b, whole[1 : m + 1, 2 : n + 2])
        assert (whole[0] == 7).all()
        assert (whole[m + 1 :] == 7).all()
        assert (whole[:, :2] == 7).all()
        assert (whole[:, n + 2 :] == 7).all()
        odd = cp.full((m, 2 * n + 1), 7, dtype)
        check(a, b, odd[:, : 2 * n].reshape(m, n, 2))
        check(a, b, odd[:, 1:].reshape(m, n, 2))
        check(a, b, cp.full((m, 2, n), 7, dtype).transpose(0, 2, 1))
        own = Pairs(a.array.copy(), format)
        check(own, b, own.array)
        half_way = cp.concatenate([a.array, a.array[:1]])
        check(Pairs(half_way[:m], format), b, half_way[1:])


@pytest.mark.parametrize("format", HALF_FORMATS)
@pytest.mark.parametrize("precision", ["fp16", "bf16", "3xfp16"])
def test_pairs_in_rows_of_an_odd_length(
    cp: Any, rng: np.random.Generator, format: str, precision: str
) -> None:
    """Every other row begins in the middle of a word."""
    a, b = (on_gpu(cp, random_pairs(rng, format, *dims)) for dims in ((20, 31), (31, 9)))
    expected = gemm(a, b, precision=precision).get()
    rows = cp.zeros((20, 63), a.array.dtype)
    rows[:, :62] = a.array.reshape(20, 62)
    shifted = Pairs(rows[:, :62].reshape(20, 31, 2), format)
    assert shifted.array.strides == (126, 4, 2)
    np.testing.assert_array_equal(gemm(shifted, b, precision=precision).get(), expected)


@pytest.mark.parametrize("precision", ["fp64", "fp32", "3xtf32", "fp16", "7xint8"])
def test_pairs_of_fp32_that_begin_in_the_middle_of_a_number(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """At an address that complex64 does not have."""
    held = cp.asarray(rng.standard_normal(1 + 2 * 31 * 40, np.float32))
    odd, even = held[1:].reshape(31, 40, 2), held[1:].copy().reshape(31, 40, 2)
    assert odd.data.ptr % 8 == 4
    expected = gemm(Pairs(even, "fp32"), Pairs(even, "fp32"), op_b="C", precision=precision)
    found = gemm(Pairs(odd, "fp32"), Pairs(odd, "fp32"), op_b="C", precision=precision)
    np.testing.assert_array_equal(found.get(), expected.get())


@pytest.mark.parametrize("format", HALF_FORMATS)
def test_complex_half_overflows_to_an_infinity(cp: Any, format: str) -> None:
    a = cp.full((1, 4), 1e30 if format == "bf16" else 300, cp.complex64)
    found = gemm(a, a.T, precision=format, output="complex-half").to_complex64().get()
    assert np.isinf(found.real)


def test_c_is_not_read_where_beta_is_zero(cp: Any) -> None:
    nan = Pairs(cp.full((3, 3, 2), np.nan, cp.float16), "fp16")
    eye = cp.eye(3, dtype=cp.complex64)
    found = gemm(eye, eye, nan, precision="fp16", output="complex-half").to_complex64()
    np.testing.assert_array_equal(found.get(), np.eye(3))


def test_pairs_on_another_device(cp: Any) -> None:
    with pytest.raises(TypeError, match="must all be on the CPU"):
        gemm(pairs(np.zeros((2, 2, 2), np.int8)), cp.eye(2))
