"""Lines of an operand that have a wider range than the integers of an exact product hold.

The largest norm that the moduli allow decides a line's unit (`scaling.exponents`), whatever its
smallest component is. A component below one unit is rounded to 0 or 1, so nothing may be left of
it. The bound of a product holds in any case: it is relative to the norms of row and column.
"""

from __future__ import annotations

import numpy as np

from argand.gemm.modular.moduli import Moduli, moduli
from argand.gemm.modular.scaling import exponents
from argand.gemm.scaling_range import LineRange
from argand.rounding import Array

_CHUNK = 1 << 18
"""Complex numbers whose largest magnitude is found together."""


def integer_range(a: Array, b: Array, count: int) -> LineRange:
    """Return the range of the rows of op(A) (..., m, k) and the columns of op(B) (..., k, n).

    Lines out of range have a component, not 0, below one unit of their integers by ``count``
    moduli. Lines that hold NaN or infinity are not among them: their results are NaN.

    Raises ValueError where k is too long for the moduli.
    """
    found, whole = LineRange(0, 0, 1.0), moduli(count)
    for x, axis in ((a, -1), (b, -2)):
        lines = np.moveaxis(x, axis, -1)
        for place in np.ndindex(lines.shape[:-2]):
            matrix = lines[place]
            step = max(1, _CHUNK // matrix.shape[-1])
            for start in range(0, len(matrix), step):
                found += _range_of(matrix[start : start + step], whole)
    return found


def _range_of(x: Array, whole: Moduli) -> LineRange:
    parts = np.abs(np.concatenate([x.real, x.imag], axis=1).astype(np.float64))
    finite = np.isfinite(parts).all(axis=1)
    if not finite.all():
        parts[~np.isfinite(parts)] = 0
    largest = parts.max(axis=1)
    least = np.where(parts > 0, parts, np.inf).min(axis=1)
    with np.errstate(over="ignore"):
        spreads = np.divide(largest, least, out=np.ones(len(x)), where=largest > 0)
    near = np.flatnonzero(finite & (largest > 0) & ~_surely_held(parts, least, whole))
    units = np.ldexp(least[near], exponents(x[near], whole).astype(np.int32))
    spread = min(float(spreads.max(initial=1.0)), float(np.finfo(np.float64).max))
    return LineRange(len(x), int(np.count_nonzero(units < 1)), spread)


def _surely_held(parts: Array, least: Array, whole: Moduli) -> Array:
    """Return whether norms in fp64 show that lines hold their least component, without exponents.

    A line's exponent e is the largest that its norm allows, so 2^(e + 1) is too large. What stands
    for its norm exceeds it by sqrt(2 k) units of its largest component's 2^-14 at most.
    """
    width = parts.shape[1]
    above = 2.02 * (1 + np.sqrt(width) / 2**14)
    limit = float(whole.largest_squared_norm(width // 2)) ** 0.5
    with np.errstate(over="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", parts, parts))
    return np.asarray(least * limit >= above * norms)
