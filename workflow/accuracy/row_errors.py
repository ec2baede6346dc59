"""Errors of transforms row by row, in the 2-norm and of the largest bin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workflow.accuracy.assessment import finite_lines, misplaced
from workflow.accuracy.lines import norm_along
from workflow.accuracy.references import Array, SpectrumReference
from workflow.threads import for_each, stretches

_BLOCK_VALUES = 1 << 16
"""Complex values compared at a time: what is made of them stays in a core's cache."""


@dataclass
class RowErrors:
    """Errors of rows (row,); those whose reference is not finite count 0.

    Attributes:
        sizes, errors: 2-norms of the reference and of the error.
        peaks, largest: largest bin of the reference and of the error.
        parts: (2, row), largest error of a real and of an imaginary part, over ``magnitude``.
        misplaced: counts (3,) of rows, by `assessment.misplaced`.
    """

    sizes: Array
    errors: Array
    peaks: Array
    largest: Array
    parts: Array
    misplaced: Array


def row_errors(reference: SpectrumReference, result: Array) -> RowErrors:
    """Return the errors of each row of a result of the reference's shape (..., N)."""
    length = result.shape[-1]
    exact, got = reference.values.reshape(-1, length), result.reshape(-1, length)
    count, magnitude = len(exact), reference.magnitude.reshape(-1)
    # Long rows are compared in pieces, so that what is made of one takes no multiple of its memory.
    across = stretches(length, _BLOCK_VALUES)
    down = stretches(count, max(1, _BLOCK_VALUES // max(length, 1)))
    known, finite = np.ones((2, count), bool)
    sizes, errors, peaks, largest, *parts = np.zeros((6, count, len(across)))

    def finds(some: slice) -> None:
        for piece in across:
            known[some] &= finite_lines(exact[some, piece], -1)
            finite[some] &= finite_lines(got[some, piece], -1)

    def compare(block: tuple[slice, int]) -> None:
        some, index = block
        right = np.where(known[some, None], exact[some, across[index]], 0)
        error = np.where(known[some, None], got[some, across[index]], 0) - right
        for part, values in zip(parts, (error.real, error.imag), strict=True):
            part[block] = np.abs(values).max(axis=-1)
        moduli, off = np.abs(right), np.abs(error)
        sizes[block], errors[block] = norm_along(moduli, -1), norm_along(off, -1)
        peaks[block], largest[block] = moduli.max(axis=-1), off.max(axis=-1)

    with np.errstate(all="ignore"):
        for_each(finds, down)
        for_each(compare, [(some, index) for some in down for index in range(len(across))])
        either = np.array([part.max(axis=-1, initial=0) for part in parts])
        return RowErrors(
            norm_along(sizes, -1),
            norm_along(errors, -1),
            peaks.max(axis=-1, initial=0),
            largest.max(axis=-1, initial=0),
            np.where(either == 0, 0, either / magnitude),
            misplaced(known, finite),
        )
