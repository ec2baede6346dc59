"""Hermitian systems on the CPU by a call of LAPACK's posv for each, without copies of SciPy's.

SciPy's own function takes 1.2 us a call for its arguments. Here posv is called by its address, with
arguments that exist: they name memory that is kept, into which some systems are copied at a time.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np

from argand.hermitian.cpu_finite import has_finite_pivots, is_finite
from argand.runtime.complex_types import PREFIX
from argand.runtime.kept_memory import KeptMemory
from argand.runtime.scipy_routines import address_of

_NUMBERS, _MOST_NUMBERS = 1 << 13, 1 << 16
"""Numbers that are copied at a time, which stay in a core's cache, and most numbers of a system:
beside the arithmetic of more SciPy's copies take no time."""
_Memory = tuple[Any, Any, list[tuple[Any, ...]], Any, bytes]
"""Memory of some systems: their matrices; the conjugates of their right-hand sides; the arguments
of a call of posv for each; the rows without a pivot, or 0, that the calls write."""


def each_by_posv(systems: int, n: int, columns: int, dtype: str) -> Callable[[Any, Any], Any]:
    """Return a solver of (systems, n, n) and (systems, n, k), none of them 0, by posv.

    It returns None where a system has no positive or finite pivot, or a solution is not
    `is_finite`, and for systems that are left to SciPy's own function. posv reads column-major
    matrices: it is given R^T, which is R's conjugate, with R's lower triangle as its upper one, and
    solves for the conjugate of x.
    """
    address = address_of("lapack", f"{PREFIX[dtype]}posv")
    numbers = n * (n + columns)
    if address is None or numbers > _MOST_NUMBERS:
        return lambda r, b: None
    posv, run_all = ctypes.PYFUNCTYPE(None)(address), deque[Any](maxlen=0).extend
    some = min(systems, max(1, _NUMBERS // numbers))
    kept = KeptMemory(
        partial(_memory, some, n, columns, np.dtype(dtype)),
        some * numbers * np.dtype(dtype).itemsize,
    )
    starts = range(0, systems, some)
    empty, conjugate = np.empty, np.conjugate

    def solve(r: Any, b: Any) -> Any:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        matrices, sides, calls, rows, zeros = memory
        x = empty(b.shape, b.dtype)
        found = True
        if some == systems:
            matrices[...] = r
            conjugate(b, sides)
            run_all(starmap(posv, calls))
            conjugate(sides, x)
            found = bytes(rows) == zeros
        else:
            for first in starts:
                part = slice(first, first + some)
                count = min(some, systems - first)
                matrices[:count] = r[part]
                conjugate(b[part], sides[:count])
                run_all(starmap(posv, calls[:count]))
                conjugate(sides[:count], x[part])
                found = found and not any(rows[:count])
        kept.append(memory)
        return x if found and is_finite(x) and has_finite_pivots(r) else None

    return solve


def _memory(systems: int, n: int, columns: int, dtype: np.dtype[Any]) -> _Memory:
    matrices = np.empty((systems, n, n), dtype)
    sides = np.empty((systems, columns, n), dtype)
    rows, at = (ctypes.c_int * systems)(), ctypes.byref
    triangle, order, count = at(ctypes.c_char(b"U")), at(ctypes.c_int(n)), at(ctypes.c_int(columns))
    to_matrices, to_sides = (
        (ctypes.c_char * x.nbytes).from_buffer(x.data) for x in (matrices, sides)
    )
    matrix, side = (x.nbytes // systems for x in (matrices, sides))
    calls = [
        (triangle, order, count, at(to_matrices, i * matrix), order, at(to_sides, i * side), order,
         at(rows, i * ctypes.sizeof(ctypes.c_int)))
        for i in range(systems)
    ]  # fmt: skip
    return matrices, sides.swapaxes(1, 2), calls, rows, bytes(rows)
