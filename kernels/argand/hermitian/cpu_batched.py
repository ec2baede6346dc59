"""Many small Hermitian systems on the CPU, a step for all of them at a time.

R = L D L^H without square roots, row by row of D L^H, beside which the right-hand sides stand:
what makes D L^H of R makes L^-1 b of them. The systems are the last axis, along which NumPy is
fast, and a row is finished before the next one begins, so that half of a triangle's steps suffice.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from argand.runtime.quiet import quietly

_MOST_PIVOT: Mapping[str, float] = MappingProxyType({"complex64": 2.0**62, "complex128": 2.0**510})
"""Largest pivot by type, and the reciprocal of the least one: no quotient of a row by it that
matters to a further pivot is below the normal numbers. Others are LAPACK's."""


def solve_together(r: Any, b: Any) -> Any:
    """Return the solutions of (systems, n, n) and (systems, n, k).

    None where a pivot is not positive, not finite or too far from 1. No number of a system reaches
    another one, and none of a right-hand side another one's solution.
    """
    return quietly(_solved, r, b)


def _solved(r: Any, b: Any) -> Any:
    systems, n, columns = b.shape
    conjugate, multiply, subtract, add = np.conjugate, np.multiply, np.subtract, np.add.reduce
    # Rows of D L^H, then of L^H; numbers left of the diagonal may be anything and are not read.
    a = np.empty((n, n + columns, systems), b.dtype)
    conjugate(r.transpose(2, 1, 0), a[:, :n])
    x = a[:, n:]
    x[...] = b.transpose(1, 2, 0)
    above = np.empty((n, n, systems), b.dtype)  # conjugates of rows of D L^H
    reciprocals = np.zeros((n, systems), b.dtype)  # complex, as NumPy would convert them otherwise
    diagonals, pivots = reciprocals.real, a.real
    for row in range(n):
        left = a[row, row:]
        if row == 1:
            subtract(left, multiply(above[0, 1], a[0, 1:]), left)
        elif row:
            subtract(left, add(multiply(above[:row, row, None], a[:row, row:]), 0), left)
        np.reciprocal(pivots[row, row], diagonals[row])
        right = a[row, row + 1 :]
        conjugate(right[: n - 1 - row], above[row, row + 1 :])
        multiply(right, reciprocals[row], right)
    for row in range(n - 1, 0, -1):
        upper = x[:row]
        subtract(upper, multiply(a[:row, row, None], x[row]), upper)
    most = _MOST_PIVOT[str(b.dtype)]
    if not (1 / most <= diagonals.min() and diagonals.max() <= most):
        return None
    return x.transpose(2, 0, 1).copy()
