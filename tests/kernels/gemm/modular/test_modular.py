"""Exact products by residues: the moduli, the integers, and results against Python's integers."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, isqrt
from typing import Any

import numpy as np
import pytest
from argand.gemm.modular.cpu import product
from argand.gemm.modular.moduli import (
    MAX_MODULI,
    MIN_MODULI,
    MIN_PRECISION_MODULI,
    MODULI,
    fewest_moduli,
    moduli,
    root_of_minus_one,
)
from argand.gemm.modular.reconstruction import Accumulator, rounded
from argand.gemm.modular.residues import integers, residues
from argand.gemm.modular.scaling import exponents, largest_scaling, squared_norms

from tests.covers import examples
from tests.normal import normal, wide_normal

COUNTS = tuple(range(MIN_PRECISION_MODULI, MAX_MODULI + 1))
TYPES = (np.complex64, np.complex128)
Array = np.ndarray[Any, Any]


def prime_factors(number: int) -> set[int]:
    return {p for p in range(2, number + 1) if number % p == 0 and all(p % q for q in range(2, p))}


def test_moduli_are_the_largest_with_a_root_of_minus_one() -> None:
    """Taken from 255 down, each that is coprime to those before and has prime factors 1 mod 4."""
    found: list[int] = []
    for number in range(255, 1, -2):
        fits = all(p % 4 == 1 for p in prime_factors(number))
        if fits and all(gcd(number, other) == 1 for other in found):
            found.append(number)
    assert tuple(found[:MAX_MODULI]) == MODULI
    for p in MODULI:
        assert (root_of_minus_one(p) ** 2 + 1) % p == 0
    with pytest.raises(ValueError, match="no square root modulo 7"):
        root_of_minus_one(7)


@pytest.mark.parametrize("count", COUNTS)
def test_a_row_of_a_modulus_splits_and_joins_every_residue(count: int) -> None:
    whole = moduli(count)
    for row in whole.rows:
        assert whole.product == row.p * row.rest
        for real, imag in ((1, 0), (0, 1), (row.p - 1, 17), (120, 64)):
            plus, minus = real + row.root * imag, real - row.root * imag
            assert (plus + minus) * row.real * row.rest % row.p == real % row.p
            assert (plus - minus) * row.imag * row.rest % row.p == imag % row.p


@pytest.mark.parametrize("count", [MIN_MODULI - 1, MAX_MODULI + 1])
def test_other_counts_are_refused(count: int) -> None:
    with pytest.raises(
        ValueError, match=f"moduli must be {MIN_MODULI} to {MAX_MODULI}, got {count}"
    ):
        moduli(count)


@pytest.mark.each_value
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("k", [1, 2, 4096, 10**6, 2**30])
def test_the_largest_norm_leaves_room_for_rounding(count: int, k: int) -> None:
    """(norm + sqrt(2k)/2)^2 stays below P/2, and a norm half a per cent larger would not do."""
    whole = moduli(count)
    largest = whole.largest_squared_norm(k)
    assert largest > 0
    unit = 1 << 40  # square roots in fixed point
    norm = isqrt(largest * unit**2) + 1
    rounding = isqrt(2 * k * unit**2) // 2 + 1
    assert 2 * (norm + rounding) ** 2 < whole.product * unit**2
    assert 2 * (norm * 1005 // 1000 + rounding) ** 2 > whole.product * unit**2


def test_k_that_is_too_long_is_refused() -> None:
    whole = moduli(MIN_PRECISION_MODULI)
    for times in (1, 4, 1 << 20):
        assert whole.largest_squared_norm(times * whole.product) == 0
    assert whole.relative_truncation(whole.product) == float("inf")


def test_the_fewest_moduli_for_a_tolerance() -> None:
    assert fewest_moduli(4096, 1e-5, 2.0**-24) == 7
    assert fewest_moduli(4096, 1e-14, 2.0**-53) == 15
    # Rounding adds the roundoff of the result, which is larger than |a_i| |b_j| by what is lost.
    lost = moduli(6).relative_truncation(4096)
    assert fewest_moduli(4096, lost + 2.0**-24, 2.0**-24) == 7
    assert fewest_moduli(4096, lost + 2.0**-24 * (1 + lost), 2.0**-24) == 6
    with pytest.raises(ValueError, match=r"17 moduli prove 1\.6e-16, of which"):
        fewest_moduli(4096, 1e-16, 2.0**-53)


@pytest.mark.parametrize("limit", [3, 2**40 + 1, 2**61, 2**62 - 1, 2**62, 2**123 + 12345])
def test_the_largest_scaling(limit: int) -> None:
    sums = [1, 2, 3, 4, 5, 2**30 - 1, 2**30, 2**53 - 1, 2**53, 2**53 + 1, 2**61 + 1]
    found = largest_scaling(np.array(sums, np.uint64), limit)
    for total, power in zip(sums, found.tolist(), strict=True):
        assert total * Fraction(4) ** power <= limit < total * Fraction(4) ** (power + 1)


@pytest.mark.parametrize("dtype", TYPES)
def test_norms_hold_and_are_the_same_in_any_order(rng: np.random.Generator, dtype: Any) -> None:
    x = normal(rng, 9, 501, dtype=dtype)
    x[1] *= 1e-30
    x[2, 3:] = 0
    x[3] *= 1e30
    sums, units = squared_norms(x)
    for line, total, unit in zip(x, sums.tolist(), units.tolist(), strict=True):
        exact = sum(Fraction(float(v)) ** 2 for z in line for v in (z.real, z.imag))
        assert exact <= total * Fraction(4) ** unit <= exact * Fraction(11, 10)
    order = np.concatenate([rng.permutation(256), 256 + rng.permutation(501 - 256)])
    other = squared_norms(x[:, order])
    np.testing.assert_array_equal(other, (sums, units))


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", COUNTS)
def test_integers_are_within_range_and_residues_are_theirs(
    rng: np.random.Generator, count: int, dtype: Any
) -> None:
    whole = moduli(count)
    x = normal(rng, 8, 33, dtype=dtype) * np.exp(3 * rng.standard_normal((8, 33))).astype("f4")
    found = integers(x, whole)
    real, imag = found.real.astype(object), found.imag.astype(object)
    assert (2 * (real**2 + imag**2).sum(axis=1) < whole.product).all()
    assert (8 * 4 * (real**2 + imag**2).sum(axis=1) > whole.product).all(), "no bit is given away"
    for row in whole.rows:
        plus, minus = residues(found, row)
        assert max(np.abs(plus).max(), np.abs(minus).max()) <= row.p // 2 <= 120
        assert not ((real + row.root * imag - plus) % row.p).any()
        assert not ((real - row.root * imag - minus) % row.p).any()


def exact_product(a: Array, b: Array, count: int) -> Array:
    """The model in Python's integers: rounded operands, exact sums, one rounding."""
    rows, columns = integers(a, moduli(count)), integers(np.ascontiguousarray(b.T), moduli(count))
    ar, ai, br, bi = (
        x.astype(object) for x in (rows.real, rows.imag, columns.real.T, columns.imag.T)
    )
    real, imag = ar @ br - ai @ bi, ar @ bi + ai @ br
    out = np.empty(real.shape, a.dtype)
    for i, j in np.ndindex(real.shape):
        scale = Fraction(2) ** -int(rows.exponents[i] + columns.exponents[j])
        out[i, j] = complex(
            nearest(real[i, j] * scale, out.real.dtype), nearest(imag[i, j] * scale, out.real.dtype)
        )
    return out


def nearest(x: Fraction, dtype: Any) -> float:
    """x rounded to a type, to nearest, ties to even."""
    if x == 0:
        return 0.0
    bits, least = (24, -149) if dtype == np.float32 else (53, -1074)
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = max(exponent - bits + 1, least)
    found = round(size / Fraction(2) ** unit) * Fraction(2) ** unit
    if found >= Fraction(2) ** (128 if dtype == np.float32 else 1024):
        return float("inf") if x > 0 else -float("inf")
    return float(found) if x > 0 else -float(found)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", COUNTS)
def test_products_are_those_of_integers(rng: np.random.Generator, count: int, dtype: Any) -> None:
    for m, n, k in ((5, 7, 40), (1, 3, 1), (4, 2, 129)):
        a, b = normal(rng, m, k, dtype=dtype), normal(rng, k, n, dtype=dtype)
        a[0] *= dtype(1e-20)
        b[:, 0] *= dtype(2.0**60)
        np.testing.assert_array_equal(product(a, b, moduli(count)), exact_product(a, b, count))


@pytest.mark.parametrize("dtype", TYPES)
def test_results_at_the_ends_of_the_range(rng: np.random.Generator, dtype: Any) -> None:
    """Subnormal results and operands, results beyond the range: rounded once, as all others."""
    tiny, huge = (1e-38, 1e30) if dtype == np.complex64 else (1e-300, 1e300)
    a, b = normal(rng, 6, 9, dtype=dtype), normal(rng, 9, 6, dtype=dtype)
    with np.errstate(all="ignore"):
        for left, right in ((tiny, 1e-4), (tiny, tiny), (huge, huge), (tiny, huge)):
            x, y = a * dtype(left), b * dtype(right)
            np.testing.assert_array_equal(product(x, y, moduli(15)), exact_product(x, y, 15))


def test_integers_of_few_bits_are_exact(rng: np.random.Generator) -> None:
    x, y = (rng.integers(-128, 128, (2, *shape)) for shape in ((20, 700), (700, 30)))
    a, b = (z[0] + 1j * z[1] for z in (x, y))
    got = product(a.astype(np.complex64), b.astype(np.complex64), moduli(7))
    np.testing.assert_array_equal(got, (a @ b).astype(np.complex64))


@pytest.mark.parametrize("count", [7, 8, 15, 16])
@pytest.mark.parametrize("phi", [0.0, 0.5, 2.0])
def test_errors_are_within_the_proven_bound(
    rng: np.random.Generator, count: int, phi: float
) -> None:
    for k in (1, 100, 3000)[: examples(3)] if phi else (100,):
        shape = (12, k), (k, 13)
        a, b = (
            (wide_normal(rng, *s) * np.exp(phi * rng.standard_normal(s))).astype(np.complex128)
            for s in shape
        )
        got = product(a, b, moduli(count))
        parts = [x.astype(object) for x in (a.real, a.imag, b.real, b.imag)]
        ar, ai, br, bi = ([[Fraction(v) for v in line] for line in x.tolist()] for x in parts)
        for i, j in ((0, 0), (11, 12), (5, 7)):
            left, right = (
                list(zip(ar[i], ai[i], strict=True)),
                [(br[p][j], bi[p][j]) for p in range(k)],
            )
            real = sum(x * u - y * v for (x, y), (u, v) in zip(left, right, strict=True))
            imag = sum(x * v + y * u for (x, y), (u, v) in zip(left, right, strict=True))
            error = abs(complex(Fraction(got[i, j].real) - real, Fraction(got[i, j].imag) - imag))
            size = np.linalg.norm(a[i]) * np.linalg.norm(b[:, j])
            bound = moduli(count).relative_truncation(k) * size + 2.0**-53 * abs(got[i, j])
            assert error <= bound * (1 + 1e-12)


@pytest.mark.parametrize("count", [6, 16])
def test_what_is_not_finite_stays_in_its_row_and_column(
    rng: np.random.Generator, count: int
) -> None:
    a, b = wide_normal(rng, 7, 20), wide_normal(rng, 20, 9)
    whole = product(a, b, moduli(count))
    a[2, 3] = np.nan
    a[5, 0] = complex(0, -np.inf)
    b[19, 4] = np.inf
    got = product(a, b, moduli(count))
    lost = np.zeros((7, 9), bool)
    lost[[2, 5]] = True
    lost[:, 4] = True
    assert np.isnan(got.real[lost]).all()
    assert np.isnan(got.imag[lost]).all()
    np.testing.assert_array_equal(got[~lost], whole[~lost])


def test_zeros_and_empty_shapes(rng: np.random.Generator) -> None:
    a = wide_normal(rng, 3, 5)
    a[1] = 0
    got = product(a, np.zeros((5, 4), complex), moduli(7))
    np.testing.assert_array_equal(got, np.zeros((3, 4)))
    assert not np.signbit(got.real).any()
    for m, n, k in ((0, 3, 2), (3, 0, 2), (3, 2, 0)):
        got = product(np.ones((m, k), complex), np.ones((k, n), complex), moduli(7))
        np.testing.assert_array_equal(got, np.zeros((m, n)))


def test_integers_of_any_size_come_back_from_their_residues() -> None:
    values = [sign * x for x in (0, 1, 2**32, 2**64 - 1, 2**64, 3 * 2**64) for sign in (1, -1)]
    whole = moduli(11)
    found = Accumulator((len(values),), whole)
    for index, row in enumerate(whole.rows):
        found.add(index, np.array([x * pow(row.rest, -1, row.p) % row.p for x in values]))
    parts = (part.tolist() for part in found.magnitudes())
    assert [
        (high * 2**64 + low) * (-1) ** sign for sign, high, low in zip(*parts, strict=True)
    ] == values


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_of_any_integer_and_exponent(rng: np.random.Generator, dtype: Any) -> None:
    values = [0, 1, 2**24 + 1, 2**53 + 1, 2**62, 2**63 - 1, 2**64, 2**88 + 2**63, 2**124 - 1]
    values += [int(rng.integers(1 << 62)) << int(s) for s in rng.integers(0, 62, 60)]
    values += [(1 << 90) + (1 << 37) + int(bit) for bit in (0, 1)]  # a tie, and just above it
    for exponent in (0, -60, -200, -1170, 40, 950):
        high = np.array([v >> 64 for v in values], np.uint64)
        low = np.array([v & (2**64 - 1) for v in values], np.uint64)
        negative = np.arange(len(values)) % 2 == 1
        got = rounded(negative, high, low, np.full(len(values), exponent), dtype)
        signs = np.where(negative, -1, 1).tolist()
        expected = [
            nearest(s * v * Fraction(2) ** exponent, dtype)
            for v, s in zip(values, signs, strict=True)
        ]
        np.testing.assert_array_equal(got, np.array(expected, dtype))
        assert not np.signbit(got[got == 0]).any()


def test_exponents_of_lines_of_zeros_and_of_the_smallest_numbers() -> None:
    x = np.array([[0, 0], [5e-324, 0], [1.7e308, 1.7e308j]], complex)
    found = exponents(x, moduli(16))
    assert found[0] == 0
    kept = integers(x, moduli(16))
    assert kept.real[1, 0] > 2**50
    assert 2**50 < kept.imag[2, 1] < 2**62
