"""Lines of an operand that have a wider range than a scaled precision holds at its roundoff.

A scaled precision (3xfp16, fp16) brings the largest component of each row of op(A) and of each
column of op(B) to the top of its format. Components down to 2^-`Precision.full_range` of it are
held to the unit roundoff; smaller ones lose bits, down to `Precision.scaled_floor` of it, below
which they are rounded to zero. The error of a product stays small against the norms of the row and
of the column, but a result that rests on the small components alone is less accurate than u says.

A line below 2^-112 is scaled by 2^126 and not further, so it does not reach the top. Nothing more
is lost there: numbers that small are multiples of fp32's 2^-149, and 2^-23 fits into fp16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.operands import as_operand, oriented_shape
from argand.gemm.pairs import Pairs
from argand.precision import Precision, get_precision
from argand.rounding import Array

_CHUNK_VALUES = 1 << 20
"""Values that are processed together, so that intermediates stay in the last-level cache."""
_INFINITY = np.uint32(0x7F800000)


@dataclass(frozen=True)
class LineRange:
    """The fit of operands' lines (rows of op(A), columns of op(B)) to a precision.

    ``out_of_range`` of ``lines`` have a larger spread than 2^`Precision.full_range`.
    ``largest_spread`` is the largest of all: over the finite components of a line that are not 0,
    the largest over the smallest, both as fp32 holds them. 1 where there are none.
    """

    lines: int
    out_of_range: int
    largest_spread: float

    def __add__(self, other: LineRange) -> LineRange:
        """Return the range of both groups of lines."""
        return LineRange(
            self.lines + other.lines,
            self.out_of_range + other.out_of_range,
            max(self.largest_spread, other.largest_spread),
        )


def product_range(a: Any, b: Any, precision: Any) -> LineRange:
    """Return the range of the rows of op(A) (..., m, k) and the columns of op(B) (..., k, n).

    ``precision`` is a name, a row or a dtype. Lines that a broadcast repeats count once. Raises
    ValueError where the precision is not scaled.
    """
    row = get_precision(precision, exact=True)
    return line_range(_numbers(a, "a"), row, -1) + line_range(_numbers(b, "b"), row, -2)


def _numbers(x: Any, name: str) -> Array:
    """Return an operand as an array of at least two axes."""
    x = as_operand(x, name)
    oriented_shape(tuple(x.shape), "N", name=name)
    return np.asarray(x.to_complex64() if isinstance(x, Pairs) else x)


def line_range(x: Array, precision: Precision, axis: int) -> LineRange:
    """Return the range of the lines of x (..., rows, columns): axis -1 for rows, -2 for columns.

    Raises ValueError where the precision is not scaled: no line is out of its range then.
    """
    if precision.full_range is None:
        raise ValueError(f"precision must scale its operands, got {precision.name}, which does not")
    spreads = line_spreads(x, axis)
    out_of_range = int(np.count_nonzero(spreads > 2.0**precision.full_range))
    return LineRange(spreads.size, out_of_range, float(spreads.max(initial=1.0)))


def line_spreads(x: Array, axis: int) -> npt.NDArray[np.float64]:
    """Return (matrices, lines): each line's spread of x (..., rows, columns) along ``axis``."""
    rows, columns = x.shape[-2:]
    count, depth = (rows, columns) if axis == -1 else (columns, rows)
    matrices = x.reshape(math.prod(x.shape[:-2]), rows, columns)
    spreads = np.ones((len(matrices), count))
    if not x.size:
        return spreads
    lines = max(1, _CHUNK_VALUES // depth)
    group = max(1, lines // count)
    for first in range(0, len(matrices), group):
        for start in range(0, count, lines):
            part = (slice(first, first + group), slice(start, start + lines))
            chosen = matrices[part] if axis == -1 else matrices[part[0], :, part[1]]
            spreads[part] = _spreads(chosen, axis)
    return spreads


def _spreads(x: Array, axis: int) -> npt.NDArray[np.float64]:
    """Return the spread of each line of x (matrices, rows, columns), none of them empty."""
    with np.errstate(over="ignore"):
        single = x.astype(np.complex64 if x.dtype.kind == "c" else np.float32, copy=False)
    (largest_re, least_re), (largest_im, least_im) = (
        _extremes(part, axis) for part in (single.real, single.imag)
    )
    largest, least = np.maximum(largest_re, largest_im), np.minimum(least_re, least_im)
    some = largest > 0
    tops = largest.view(np.float32).astype(float)
    bottoms = np.where(some, least + np.uint32(1), largest).view(np.float32).astype(float)
    return np.asarray(np.divide(tops, bottoms, out=np.ones(tops.shape), where=some))


def _extremes(part: Array, axis: int) -> tuple[Any, Any]:
    """Return the bits of each line's largest finite magnitude, and of its smallest but 0, less one.

    As integers they order like the magnitudes, and a zero less one comes after all of them.
    """
    bits = np.abs(part).view(np.uint32)
    largest = bits.max(axis=axis)
    if (largest >= _INFINITY).any():
        bits[bits >= _INFINITY] = 0
        largest = bits.max(axis=axis)
    bits -= np.uint32(1)
    return largest, bits.min(axis=axis)
