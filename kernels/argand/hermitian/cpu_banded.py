"""Several Hermitian systems of few rows on the CPU, as one system of a banded matrix.

A call of LAPACK takes longer than the arithmetic of such a system. The matrices along the diagonal
of a larger one make a band of as many diagonals as they have rows. Its Cholesky factors are those
of the matrices: what couples neighbours is zero and stays so.
"""

from __future__ import annotations

import cmath
from functools import lru_cache
from typing import Any

import numpy as np

from argand.hermitian.cpu_finite import has_finite_pivots, is_finite
from argand.runtime.cpu.scipy_routines import lapack


def solve_banded(r: Any, b: Any) -> Any:
    """Return the solutions of (systems, n, n) and (systems, n, k) by one call of pbsv.

    None where a matrix has no factor, or what is not finite, or squares that are not: it would
    reach its neighbours.
    """
    systems, n, columns = b.shape
    if n == 2:
        return _solve_pairs(r, b)
    places, above = _band(n)
    band = r.reshape(systems, n * n).take(places, 1)
    np.copyto(band, 0, where=above)
    if not cmath.isfinite(np.vdot(band, band)):
        return None
    # Its arguments by name take longer: lower, and both of them overwritten.
    _, x, row = lapack("pbsv", b.dtype)(band.reshape(-1, n).T, b.reshape(-1, columns), 1, n, 1)
    if row or not cmath.isfinite(np.vdot(x, x)):
        return None
    return np.ascontiguousarray(x.reshape(b.shape))  # LAPACK's columns are contiguous


def _solve_pairs(r: Any, b: Any) -> Any:
    """Return the same as `solve_banded`, for 2 rows: a tridiagonal matrix, by one call of ptsv.

    That takes loops of numbers, where pbsv takes a call of BLAS for each row and right-hand side.
    """
    systems, _, columns = b.shape
    numbers = r.reshape(systems, 4)
    couplings = np.zeros(2 * systems, b.dtype)
    couplings[::2] = numbers[:, 2]
    pivots, sides = numbers[:, ::3].real.ravel(), b.reshape(-1, columns)
    _, _, x, row = lapack("ptsv", b.dtype)(pivots, couplings[:-1], sides, 1, 1)
    if row or not is_finite(x) or not has_finite_pivots(r):
        return None
    return np.ascontiguousarray(x.reshape(b.shape))


@lru_cache(maxsize=8)
def _band(n: int) -> tuple[Any, Any]:
    """Return where each column of a matrix's lower triangle is, and what is beyond its end."""
    column, row = np.arange(n)[:, None], np.arange(n)
    return np.minimum(column + row, n - 1) * n + column, column + row >= n
