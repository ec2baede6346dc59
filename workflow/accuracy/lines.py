"""Each row of A and each column of B, as assessments of all results of a product need them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workflow.threads import for_each, stretches

Array = npt.NDArray[Any]

_BLOCK_VALUES = 1 << 16
"""Values processed at a time: what is made of them stays in a core's cache."""
SMALLEST_UNIT = float(np.finfo(float).tiny)
"""NumPy divides complex numbers by a reciprocal, which is infinite for smaller units."""


@dataclass(frozen=True)
class Lines:
    """Rows or columns of matrices: arrays of the operand's shape, with 1 for the length of a line.

    Attributes:
        sums: sums of the moduli.
        norms: 2-norms.
        largest: real or imaginary component that is finite.
        finite: whether every value is.
    """

    sums: Array
    norms: Array
    largest: Array
    finite: Array


def lines_of(x: Array, axis: int) -> Lines:
    """Return the rows (``axis`` -1) or the columns (-2) of matrices (..., rows, columns)."""
    matrices = x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])  # there may be no element
    length, lines = matrices.shape[axis], matrices.shape[-3 - axis]
    shape = (len(matrices), lines)
    sums, norms, largest = (np.zeros(shape) for _ in range(3))
    finite = np.ones(shape, bool)

    def measure(block: tuple[slice, slice]) -> None:
        some, own = block
        values = matrices[some, own] if axis == -1 else matrices[some, :, own]
        moduli = np.abs(values).astype(float)
        sums[block] = moduli.sum(axis=axis)
        norms[block] = norm_along(moduli, axis)
        parts = np.maximum(np.abs(values.real), np.abs(values.imag))
        known = np.isfinite(parts)
        largest[block] = np.where(known, parts, 0).max(axis=axis, initial=0)
        finite[block] = known.all(axis=axis)

    together = max(1, _BLOCK_VALUES // max(lines * length, 1))
    apart = stretches(lines, max(1, _BLOCK_VALUES // max(length, 1)))
    blocks = [(some, own) for some in stretches(len(matrices), together) for own in apart]
    with np.errstate(all="ignore"):
        for_each(measure, blocks)
    kept = (*x.shape[:-2], lines, 1) if axis == -1 else (*x.shape[:-2], 1, lines)
    return Lines(*(found.reshape(kept) for found in (sums, norms, largest, finite)))


def norm_along(x: Array, axis: int | tuple[int, ...]) -> Array:
    """Return 2-norms along axes of numbers whose squares may be out of fp64's range."""
    parts = np.abs(x) if np.iscomplexobj(x) else x
    unit = unit_of(parts, axis)
    return np.asarray(np.sqrt(((parts / unit) ** 2).sum(axis=axis)) * np.squeeze(unit, axis))


def norm_of(x: Array) -> float:
    """Return the 2-norm of all numbers of an array, whose squares may be out of fp64's range."""
    return float(norm_along(x.reshape(-1), 0))


def unit_of(x: Array, axis: int | tuple[int, ...]) -> Array:
    """Return the largest magnitude along axes, at least `SMALLEST_UNIT`, kept as length 1.

    It is 1 where the largest is 0 or not finite.
    """
    largest = np.abs(x).max(axis=axis, keepdims=True, initial=0)
    return np.where((largest > 0) & np.isfinite(largest), np.maximum(largest, SMALLEST_UNIT), 1)


def spectral_bound(values: Array) -> Array:
    """Return a bound on the largest singular value of [Re B; Im B] of each B (..., k, columns)."""
    stacked = np.concatenate([values.real, values.imag], axis=-2)
    unit = unit_of(stacked, (-2, -1))
    stacked = stacked / unit
    gram = np.swapaxes(stacked, -1, -2) @ stacked
    # Scaled so that the sixteenth powers stay in range.
    scale = np.abs(gram).max(axis=(-2, -1), keepdims=True, initial=0)
    gram = gram / np.where(scale > 0, scale, 1)
    squared = gram @ gram
    fourth = squared @ squared
    eighth = fourth @ fourth
    largest = np.sqrt((eighth**2).sum(axis=(-2, -1))) ** 0.125
    return np.asarray(np.sqrt(largest * scale[..., 0, 0]) * (1 + 1e-6) * unit[..., 0, 0])
