"""Products of integers in pairs, which nothing rounds before the result is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import gemm, pairs
from argand.gemm.modular.exact import RANGES, exact_moduli
from argand.gemm.modular.moduli import MIN_MODULI, MODULI, moduli
from argand.gemm.modular.residues import integers

Array = np.ndarray[Any, Any]
INTEGERS = {"int8": np.int8, "int16": np.int16}


def drawn(rng: np.random.Generator, name: str, *shape: int) -> Array:
    """Numbers over the whole range of a format."""
    if name in INTEGERS:
        limits = np.iinfo(INTEGERS[name])
        return rng.integers(limits.min, limits.max + 1, (*shape, 2)).astype(INTEGERS[name])
    bits = rng.integers(0, 1 << 16, (*shape, 2)).astype(np.uint16)
    found = bits.view(np.float16)
    return np.where(np.isfinite(found), found, np.float16(-65504))


def whole(x: Array) -> tuple[Array, Array]:
    """Both parts as Python's integers, in units of 2^-24."""
    scaled = [[int(float(v) * 2**24) for v in line] for line in x.reshape(len(x), -1)]
    parts = np.array(scaled, dtype=object).reshape(x.shape)
    return parts[..., 0], parts[..., 1]


def expected(x: Array, y: Array, dtype: Any) -> Array:
    """The product, each part rounded once. Sums of fp16 are rounded to fp64 by Python."""
    (a, b), (c, d) = whole(x), whole(y)
    real, imag = a @ c - b @ d, a @ d + b @ c
    out = np.empty(real.shape, dtype)
    for index in np.ndindex(real.shape):
        out[index] = complex(real[index] / 2**48, imag[index] / 2**48)
    return out


@pytest.mark.parametrize("left", RANGES)
@pytest.mark.parametrize("right", RANGES)
def test_products_are_rounded_once(rng: np.random.Generator, left: str, right: str) -> None:
    x, y = drawn(rng, left, 5, 300), drawn(rng, right, 300, 4)
    wide = gemm(pairs(x), pairs(y), precision="exact", out=np.empty((5, 4), complex))
    np.testing.assert_array_equal(wide, expected(x, y, np.complex128))
    single = gemm(pairs(x), pairs(y), precision="exact")
    assert single.dtype == np.complex64
    if "fp16" not in (left, right):  # sums of integers here are fp64 numbers: one rounding is left
        np.testing.assert_array_equal(single, wide.astype(np.complex64))


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("k", [1, 2, 190, 255, 4096, 40_000])
def test_the_worst_line_is_not_scaled_down(name: str, k: int) -> None:
    numbers = RANGES[name]
    count = exact_moduli(*[pairs(np.zeros((1, 1, 2), dtype_of(name)))] * 2, k)
    lines = np.full((3, k), -numbers.largest * (1 + 1j))
    lines[1] = lines[1].real
    lines[2, : k // 2] = 2.0**-numbers.fraction_bits
    assert (integers(lines, moduli(count)).exponents >= numbers.fraction_bits).all()
    assert moduli(count).product > 4 * k * numbers.largest**2 * 4**numbers.fraction_bits


def dtype_of(name: str) -> Any:
    return INTEGERS.get(name, np.float16)


@pytest.mark.parametrize(("name", "count"), [("int8", 3), ("int8", 4), ("int16", 5), ("int16", 6)])
def test_the_longest_line_of_a_number_of_moduli_is_not_scaled_down(name: str, count: int) -> None:
    x = pairs(np.zeros((1, 1, 2), dtype_of(name)))
    least, most = 1, 1 << 20
    while most - least > 1:  # the longest line lies in [least, most)
        middle = (least + most) // 2
        least, most = (middle, most) if exact_moduli(x, x, middle) <= count else (least, middle)
    for k, fits in ((least, True), (least + 1, False)):
        line = np.full((1, k), np.iinfo(INTEGERS[name]).min * (1 + 1j))
        assert (integers(line, moduli(count)).exponents[0] >= 0) == fits


@pytest.mark.parametrize(
    ("name", "k", "count"),
    [("int8", 100, 3), ("int8", 4096, 4), ("int8", 40_000, 4), ("int8", 60_000, 5),
     ("int16", 4096, 6), ("int16", 100, 5), ("fp16", 4096, 13)],
)  # fmt: skip
def test_the_moduli_are_the_fewest(name: str, k: int, count: int) -> None:
    x = pairs(np.zeros((1, 1, 2), dtype_of(name)))
    assert exact_moduli(x, x, k) == count
    # One modulus less does not hold the largest value, or holds it by less than norms allow for.
    largest = 2 * k * RANGES[name].largest ** 2 * 4 ** RANGES[name].fraction_bits
    less = np.prod(MODULI[: count - 1], dtype=object)
    assert count == MIN_MODULI or less / 2 < largest * 1.01


@pytest.mark.parametrize("count", range(MIN_MODULI, 6))
def test_sums_as_large_as_they_can_be(count: int) -> None:
    """All components at their ends, so that a part of the result is 2 k 128^2."""
    k = {3: 150, 4: 30_000, 5: 50_000}[count]
    x = np.full((1, k, 2), -128, np.int8)
    y = np.full((k, 1, 2), -128, np.int8)
    assert exact_moduli(pairs(x), pairs(y), k) == count
    got = gemm(pairs(x), pairs(y), precision="exact", out=np.empty((1, 1), complex))
    assert got[0, 0] == complex(0, 2 * k * 128**2)
    y[..., 1] = 127
    got = gemm(pairs(x), pairs(y), precision="exact", check=True, out=np.empty((1, 1), complex))
    assert got[0, 0] == complex(k * 128 * (128 + 127), k * 128)


def test_scalars_ops_and_structured_arrays(rng: np.random.Generator) -> None:
    x, y = drawn(rng, "int8", 30, 6), drawn(rng, "int8", 30, 7)
    c = (rng.integers(-9, 9, (6, 7)) + 1j).astype(np.complex64)
    got = gemm(x.view([("r", "i1"), ("i", "i1")])[..., 0], pairs(y), c, op_a="C", alpha=2, beta=3,
               precision="exact")  # fmt: skip
    a, b = (z[..., 0] + 1j * z[..., 1].astype(float) for z in (x, y))
    np.testing.assert_array_equal(got, 2 * (a.conj().T @ b) + 3 * c)


def test_other_operands_are_refused() -> None:
    x = pairs(np.zeros((3, 3, 2), np.int8))
    with pytest.raises(ValueError, match=r"takes Pairs of \['int8', 'int16', 'fp16'\], got comp"):
        gemm(x, np.ones((3, 3), complex), precision="exact")
    with pytest.raises(ValueError, match="got Pairs of bf16"):
        gemm(x, pairs(np.zeros((3, 3, 2), np.uint16), "bf16"), precision="exact")
    with pytest.raises(ValueError, match="k = 1000000000000000000 is too long for exact"):
        exact_moduli(pairs(np.zeros((1, 1, 2), np.float16)), x, 10**18)
