"""The coherence of a sum's roundings: their dependence on each other, on the data at hand.

A sum of equal numbers is rounded by the same amount again and again while it stays between two
powers of two: its error grows with k and not with sqrt(k). Numbers that differ by less than the
last place of the sum are as good as equal.

Adding p to a sum s that is a multiple of its last place q errs by what p is away from a multiple of
q, whatever s is. So what n additions lose coherently in any order is at most the sum of these
remainders of all products, at the worst of the q that partial sums may have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision
from argand.rounding import split

Array = npt.NDArray[Any]

LINES = 8
"""Most rows of A, and columns of B, whose products are summed: each row with one column."""
_LONG = 1 << 17
"""Products of more terms than this are sampled by fewer lines."""
_INDEPENDENT = 1 / 3
"""Square of the deviation of a rounding, in u of the sum: uniform within half a last place."""


def coherence(rows: Array, columns: Array, precision: Precision) -> float:
    """Return how many times independent roundings' the errors of sums at a precision may be.

    It is at least 1. The roundings of independent remainders are part of what `probabilistic`
    counts, so the sum of their squares is taken off.

    Args:
        rows: (r, k) of A, with values that are not finite set to 0.
        columns: (k, c) of B.
        precision: whose first terms are multiplied and summed in its accumulator's type.
    """
    if precision.moduli or not rows.size or not columns.size:  # sums of integers are exact
        return 1.0
    lines = min(LINES if rows.shape[1] <= _LONG else 2, max(len(rows), columns.shape[1]))
    a, b = (_first_terms(x[_spread(len(x), lines)], precision) for x in (rows, columns.T))
    # At a last place 2^-o q n remainders add up to at most 2^-o n in units of q, independent
    # roundings at q to sqrt(n). So no place below q / sqrt(n) is the worst.
    octaves = 1 + (2 * rows.shape[1]).bit_length() // 2
    expected, coherent = 0.0, np.zeros(octaves)
    for row, column in zip(a, b, strict=True):
        products = np.empty(2 * len(row))
        products[0::2] = row.real * column.real
        products[1::2] = -(row.imag * column.imag)
        sums = np.cumsum(products)
        expected += _square(sums) + _square(products)
        coherent += _coherent(products, sums, precision.accumulator.significand, octaves)
    if not expected:
        return 1.0
    return float(np.sqrt(max(1.0, _INDEPENDENT + coherent.max() / expected)))


def sampled(a: Array, b: Array, precision: Precision, rng: np.random.Generator) -> float:
    """Return `coherence` of some rows of A (m, k) and columns of B (k, n)."""
    rows = a[rng.integers(a.shape[0], size=min(LINES, a.shape[0]))]
    columns = b[:, rng.integers(b.shape[1], size=min(LINES, b.shape[1]))]
    return coherence(rows, columns, precision)


def _coherent(products: Array, sums: Array, bits: int, octaves: int) -> Array:
    """Return the squares of what remainders add up to beyond independent ones, in u of 2^-``bits``.

    There is one for each of ``octaves`` exponents of partial sums, from that of the largest down.
    """
    top = int(np.frexp(np.abs(sums).max())[1])
    found, rest, whole = np.zeros(octaves), np.empty_like(products), np.empty_like(products)
    scaled = np.ldexp(products, bits - top)  # the largest sum's last place becomes 1
    for octave in range(octaves):
        np.multiply(scaled, 2.0**octave, out=rest)
        rest -= np.rint(rest, out=whole)
        found[octave] = np.ldexp(rest.sum() ** 2 - _square(rest), 2 * (top - octave))
    return found


def _square(x: Array) -> float:
    """Return the sum of squares; threads of a BLAS cost more than they gain here."""
    return float(np.einsum("i,i->", x, x))


def _spread(count: int, lines: int) -> Array:
    """Return the numbers of ``lines`` of ``count`` lines, spread over all, or each again."""
    return np.arange(lines) * max(1, count // lines) % count


def _first_terms(lines: Array, precision: Precision) -> Array:
    """Return the first terms of operands, largest component 1, so that no sum is out of range."""
    known = np.where(np.isfinite(lines), lines, 0).astype(complex)
    largest = max(np.abs(known.real).max(initial=0), np.abs(known.imag).max(initial=0))
    if largest:
        exponent = -int(np.frexp(largest)[1])
        # In two steps: one power of two may be out of range where numbers are subnormal.
        known = known * 2.0 ** (exponent // 2) * 2.0 ** (exponent - exponent // 2)
    return split(known, precision.without_scales or precision)[0].astype(complex, copy=False)
