"""Few Hermitian systems of few rows on the CPU, as one system with their matrices on its diagonal.

A call of LAPACK takes longer than the arithmetic of such systems. The factor of the larger matrix
has theirs on its diagonal: what couples them is zero and stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from argand.hermitian.finite import has_finite_pivots, is_finite

_MOST_ROWS: Mapping[str, int] = MappingProxyType({"complex64": 24, "complex128": 16})
"""Rows of all systems up to which their zeros take less time than a call for each, or a band."""


def are_diagonal_blocks(systems: int, n: int, dtype: str) -> bool:
    """Return whether `diagonal_blocks` takes less time than a call of LAPACK for each system."""
    return systems > 1 and systems * n <= _MOST_ROWS[dtype]


def diagonal_blocks(
    systems: int, n: int, columns: int, dtype: np.dtype[Any], posv: Any
) -> Callable[[Any, Any], Any]:
    """Return what solves (systems, n, n) and (systems, n, k) by one call of posv.

    It returns None where a matrix has no factor, or what is not finite, which reaches the other
    systems.
    """
    rows, item, shape = systems * n, dtype.itemsize, (systems, n, columns)
    matrices, strides = (systems, n, n), ((rows + 1) * n * item, item, rows * item)
    zeros, view, contiguous = np.zeros, np.ndarray, np.ascontiguousarray

    def solve(r: Any, b: Any) -> Any:
        whole = zeros((rows, rows), dtype)  # column-major, as LAPACK has it, by its transpose
        view(matrices, dtype, whole, 0, strides)[...] = r
        # Its arguments by name take longer: lower, and the matrix overwritten.
        _, x, row = posv(whole.T, b.reshape(rows, columns), 1, 1)
        if row or not is_finite(x) or not has_finite_pivots(r):
            return None
        return contiguous(x).reshape(shape)

    return solve
