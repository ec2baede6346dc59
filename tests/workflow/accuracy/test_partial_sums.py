"""Partial sums in pieces and slices are those of all terms one after another."""

from __future__ import annotations

import numpy as np
import pytest

from workflow.accuracy.partial_sums import partial_sums
from workflow.accuracy.probabilistic import MIXED_DEPTH


@pytest.mark.parametrize(
    "k", [1, MIXED_DEPTH - 1, MIXED_DEPTH, MIXED_DEPTH + 1, 8 * MIXED_DEPTH, 1000]
)
def test_partial_sums_are_those_of_cumsum(rng: np.random.Generator, k: int) -> None:
    a, b = rng.standard_normal((2, k)).T.copy().view(complex)[:, 0], rng.standard_normal((k, 14))
    b = b.view(complex)
    kinds = np.stack([a.real[:, None] * b.real, a.imag[:, None] * b.imag,
                      a.real[:, None] * b.imag, a.imag[:, None] * b.real])  # fmt: skip
    sizes = abs(np.cumsum(kinds, axis=1))
    partial = np.maximum(sizes[0] + sizes[1], sizes[2] + sizes[3])
    largest = sizes.max(axis=1)
    first = np.arange(0, k, MIXED_DEPTH)
    last = np.append(first[1:], k) - 1
    expected = {
        "largest": 2 * np.maximum(largest[0] + largest[1], largest[2] + largest[3]),
        "squares": (partial**2).sum(axis=0), "mean": partial.mean(axis=0), "last": partial[-1],
        "starts": partial[first], "ends": partial[last],
        "within": np.add.reduceat(abs(a[:, None] * b) ** 2, first, axis=0),
    }  # fmt: skip
    found = partial_sums(a, b)
    # In either order a partial sum is off by k u |a| |b| at most; k of them are squared.
    size = max(1.0, (abs(a) @ abs(b)).max())
    allowed = 8 * k**2 * 2.0**-53 * size**2
    for name, right in expected.items():
        np.testing.assert_allclose(getattr(found, name), right, rtol=0, atol=allowed)
