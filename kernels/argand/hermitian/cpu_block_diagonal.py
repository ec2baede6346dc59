"""Few Hermitian systems of few rows on the CPU, as one block-diagonal system.

A call of LAPACK takes longer than the arithmetic of such systems. The Cholesky factor of the
block-diagonal matrix has their factors on its diagonal; the blocks beside it are zero. The times
behind the choice are in docs/experiments/2026-11-28-small-calls-on-a-cpu.md;
`python -m benchmarks.cpu_calls --kinds solve_hermitian` times drawn systems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from argand.hermitian.cpu_finite import has_finite_pivots, is_finite

_MOST_ROWS, _MOST_PAIRS = 16, 5
"""Rows of all systems together, and systems of 2 rows, up to which arithmetic on the zero blocks
takes less time than a call of LAPACK for each system, or than a band."""


def are_diagonal_blocks(systems: int, n: int) -> bool:
    """Return whether `diagonal_blocks` takes less time than a call of LAPACK for each system."""
    return 1 < systems <= (_MOST_PAIRS if n == 2 else _MOST_ROWS // n)


def diagonal_blocks(
    systems: int, n: int, columns: int, dtype: np.dtype[Any], posv: Any
) -> Callable[[Any, Any], Any]:
    """Return a solver of (systems, n, n) and (systems, n, k) by one call of posv.

    The solver returns None where a matrix has no factor, and where a pivot or the solution is not
    finite: such a number spreads to the other systems.
    """
    rows, item, shape = systems * n, dtype.itemsize, (systems, n, columns)
    matrices, strides = (systems, n, n), ((rows + 1) * n * item, item, rows * item)
    zeros, view, contiguous = np.zeros, np.ndarray, np.ascontiguousarray

    def solve(r: Any, b: Any) -> Any:
        whole = zeros((rows, rows), dtype)  # column-major, as LAPACK has it, by its transpose
        view(matrices, dtype, whole, 0, strides)[...] = r
        # Lower triangle, and the matrix is overwritten; arguments by name take longer.
        _, x, row = posv(whole.T, b.reshape(rows, columns), 1, 1)
        if row or not is_finite(x) or not has_finite_pivots(r):
            return None
        return contiguous(x).reshape(shape)

    return solve
