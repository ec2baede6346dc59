"""The coherence of a sum's roundings: their dependence on each other, on the data at hand.

A sum of equal numbers is rounded by the same amount again and again while it stays between two
powers of two: its error grows with k and not with sqrt(k). So some elements of a product are summed
here in fp32, one product after another, and their errors compared with those of independent
roundings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LINES = 8
"""Rows of A, and columns of B, whose products are summed."""
_MARGIN = 2.0
"""Other orders of summation may do worse than one after another."""
_LONG = 1 << 17
"""Products of more terms than this are sampled by fewer lines."""


def coherence(rows: Array, columns: Array) -> float:
    """Return how many times independent roundings' the errors of plain fp32 sums are, at least 1.

    Args:
        rows: (r, k) of A, with values that are not finite set to 0.
        columns: (k, c) of B.
    """
    a, b = _normal(rows), _normal(columns)
    if not a.size or not b.size:
        return 1.0
    error = expected = 0.0
    for row in a:
        products = np.empty((2 * len(row), b.shape[1]))
        products[0::2] = row.real[:, None] * b.real
        products[1::2] = -(row.imag[:, None] * b.imag)
        plain = np.cumsum(products, axis=0, dtype=np.float32)[-1]
        sums = np.cumsum(products, axis=0)
        error += float(((plain - sums[-1]) ** 2).sum())
        expected += float((sums**2).sum() + (products**2).sum())
    if not expected:
        return 1.0
    return max(1.0, _MARGIN * float(np.sqrt(error / expected)) * 2.0**24)


def sampled(a: Array, b: Array, rng: np.random.Generator) -> float:
    """Return `coherence` of some rows of A (m, k) and columns of B (k, n)."""
    count = LINES if a.shape[-1] <= _LONG else 2
    rows = a[rng.integers(a.shape[0], size=min(count, a.shape[0]))]
    return coherence(rows, b[:, rng.integers(b.shape[1], size=min(count, b.shape[1]))])


def _normal(lines: Array) -> Array:
    """Return lines in fp32's precision, largest component 1, so that no sum is out of range."""
    known = np.where(np.isfinite(lines), lines, 0).astype(complex)
    largest = max(np.abs(known.real).max(initial=0), np.abs(known.imag).max(initial=0))
    if largest:
        exponent = -int(np.frexp(largest)[1])
        # In two steps: one power of two may be out of range where numbers are subnormal.
        known = known * 2.0 ** (exponent // 2) * 2.0 ** (exponent - exponent // 2)
    return np.asarray(known.astype(np.complex64).astype(complex))
