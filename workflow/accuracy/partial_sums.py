"""The partial sums of an element's real products, of which `suspects` derives bounds of its error.

A part of C^_ij is the sum of two kinds of k real products each (ar br and ai bi of the real part).
Terms are taken in pieces that a core's cache holds: arrays of all of them take ten times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workflow.accuracy.probabilistic import MIXED_DEPTH

Array = npt.NDArray[Any]
_PIECE = 8 * MIXED_DEPTH
"""Terms at a time."""
_UP_TO = np.tri(MIXED_DEPTH)
"""Matrix whose product with the terms of a slice is its running sums: BLAS takes a third of the
time of `numpy.cumsum`, and another order changes them by less than what bounds in fp64 allow."""


@dataclass(frozen=True)
class PartialSums:
    """Moduli of the partial sums of the elements of a row, each (columns,) unless said.

    A partial sum is that up to a term: the moduli of both kinds together, of the part where they
    are more.

    Attributes:
        largest: bound on the modulus of a sum over any range of terms, of either part.
        squares: sum of the squares of all partial sums.
        mean: mean of all partial sums.
        last: sum of all terms.
        starts, ends: (slices, columns), the partial sums at the first and the last term of each
            slice of `MIXED_DEPTH` terms.
        within: (slices, columns), the sum of |a|^2 |b|^2 over the terms of a slice.
    """

    largest: Array
    squares: Array
    mean: Array
    last: Array
    starts: Array
    ends: Array
    within: Array


def partial_sums(a: Array, b: Array) -> PartialSums:
    """Return the partial sums of the products of a row (k,) with columns (k, columns)."""
    k, columns = b.shape
    before, prefix = np.zeros((2, 4, columns))
    squares, total, last = np.zeros((3, columns))
    starts, ends, within = [], [], []
    for first in range(0, k, _PIECE):
        x, y = a[first : first + _PIECE, None], b[first : first + _PIECE]
        slices = -(-len(x) // MIXED_DEPTH)
        terms = np.zeros((slices * MIXED_DEPTH, 4, columns))  # those beyond k stay 0
        pairs = (x.real, y.real), (x.imag, y.imag), (x.real, y.imag), (x.imag, y.real)
        for kind, (left, right) in enumerate(pairs):
            np.multiply(left, right, out=terms[: len(x), kind])
        own = terms.reshape(slices, MIXED_DEPTH, 4 * columns)
        sums = (_UP_TO @ own).reshape(slices, MIXED_DEPTH, 4, columns)
        so_far = np.cumsum(sums[:, -1], axis=0)
        sums[0] += before
        sums[1:] += before + so_far[:-1, None]
        before = before + so_far[-1]
        np.abs(sums, out=sums)
        np.maximum(prefix, sums.max(axis=(0, 1)), out=prefix)
        partial = np.maximum(sums[:, :, 0] + sums[:, :, 1], sums[:, :, 2] + sums[:, :, 3])
        starts.append(partial[:, 0])
        ends.append(partial[:, -1])
        within.append(np.einsum("stc,stc->sc", own, own).reshape(slices, 4, columns).sum(axis=1))
        counted = partial.reshape(-1, columns)[: len(x)]
        squares += np.einsum("tc,tc->c", counted, counted)
        total += counted.sum(axis=0)
        last = counted[-1]
    largest = 2 * np.maximum(prefix[0] + prefix[1], prefix[2] + prefix[3])
    found = (np.concatenate(parts) for parts in (starts, ends, within))
    return PartialSums(largest, squares, total / k, last, *found)
