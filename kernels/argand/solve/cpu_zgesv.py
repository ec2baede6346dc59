"""LAPACK's zgesv on the CPU in memory that is kept: NumPy's by its address, or SciPy's function.

The wheels of NumPy and SciPy have an OpenBLAS each, NumPy's mostly a newer one, and threads of its
own that NumPy's products leave awake: x is that of numpy.linalg.solve, to the bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from argand.rounding import Array
from argand.runtime.cpu.kept_memory import KeptMemory
from argand.runtime.cpu.numpy_blas import lapack_address
from argand.runtime.cpu.scipy_routines import routine_of

MAX_KEPT = 1 << 18
"""Numbers of a matrix up to which memory is kept: beside the arithmetic of more, pages that are
faulted in again take no time."""
_MIN_ROWS = 16
"""Rows from which NumPy's takes less time: the call by its address takes longer than SciPy's."""
Memory = tuple[Array, Array, Callable[[], int], Callable[[], Array]]
"""Memory of a system, column-major: the matrix, which becomes its factors; the right-hand sides,
which become the solutions; what solves and returns LAPACK's info; the pivots, counted from 0."""


def kept_systems(n: int, columns: int) -> KeptMemory[Memory]:
    """Return memory of systems of n rows and ``columns`` right-hand sides."""
    return KeptMemory(partial(_memory, n, columns), 16 * n * (n + columns) + 8 * n)


def _memory(n: int, columns: int) -> Memory:
    matrix, sides = np.empty((n, n), complex, "F"), np.empty((n, columns), complex, "F")
    address = lapack_address("zgesv") if n >= _MIN_ROWS else None
    by_library = _by_scipy if address is None else partial(_by_numpy, address)
    return matrix, sides, *by_library(matrix, sides)


def _by_numpy(
    address: int, matrix: Array, sides: Array
) -> tuple[Callable[[], int], Callable[[], Array]]:
    pivots, integer, at = np.empty(len(matrix), np.int64), ctypes.c_int64, ctypes.byref
    order, columns, info = integer(len(matrix)), integer(sides.shape[1]), integer()
    numbers = [ctypes.c_void_p(x.ctypes.data) for x in (matrix, pivots, sides)]
    zgesv = ctypes.CFUNCTYPE(None)(address)
    arguments: tuple[Any, ...] = (
        at(order), at(columns), numbers[0], at(order), numbers[1], numbers[2], at(order), at(info)
    )  # fmt: skip

    def solve() -> int:
        zgesv(*arguments)
        return info.value

    return solve, lambda: pivots.astype(np.intc) - np.intc(1)


def _by_scipy(matrix: Array, sides: Array) -> tuple[Callable[[], int], Callable[[], Array]]:
    zgesv, found = routine_of("lapack", "zgesv"), [np.empty(0, np.intc)]

    def solve() -> int:
        # Both are overwritten, as they are column-major; arguments by name take longer.
        _, found[0], _, info = zgesv(matrix, sides, 1, 1)
        return int(info)

    return solve, lambda: found[0]
