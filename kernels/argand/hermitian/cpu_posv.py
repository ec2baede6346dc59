"""Hermitian systems on the CPU by a call of LAPACK's posv for each, without copies of SciPy's.

SciPy's own function takes 1.2 us a call for its arguments. Here posv is called by its address, with
arguments that exist: they name memory that is kept, into which some systems are copied at a time.
"""

from __future__ import annotations

import cmath
import ctypes
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np

from argand.hermitian.cpu_finite import has_finite_pivots, is_finite
from argand.runtime.complex_types import PREFIX
from argand.runtime.cpu.kept_memory import KeptMemory
from argand.runtime.cpu.scipy_routines import address_of
from argand.runtime.cpu.threads import ONE_CORE_DOT

_NUMBERS = 1 << 13
"""Numbers that are copied at a time, which stay in a core's cache."""
_MAX_NUMBERS = 1 << 16
"""Most numbers of a system: beside the arithmetic of more SciPy's copies take no time."""
_CALL_BYTES = 400
"""Bytes of the arguments of a call, as objects of Python."""
_Memory = tuple[Any, Any, list[tuple[Any, ...]], Any, bytes, Any]
"""Memory of some systems: the conjugates of their matrices; their right-hand sides; the arguments
of a call of posv for each; the rows without a pivot, or 0, that the calls write; zeros of as many
bytes; all matrices and right-hand sides in a row."""


def each_by_posv(systems: int, n: int, columns: int, dtype: str) -> Callable[[Any, Any], Any]:
    """Return a solver of (systems, n, n) and (systems, n, k), none of them 0, by posv.

    It returns None where a system has no positive or finite pivot, or a solution is not
    `is_finite`, and for systems that are left to SciPy's own function. posv reads column-major
    matrices: the conjugate of R, row-major, is R to it, with R's lower triangle as its upper one.
    """
    address = address_of("lapack", f"{PREFIX[dtype]}posv")
    numbers = n * (n + columns)
    if address is None or numbers > _MAX_NUMBERS:
        return lambda r, b: None
    posv, run_all = ctypes.PYFUNCTYPE(None)(address), deque[Any](maxlen=0).extend
    parts = -(-systems // max(1, _NUMBERS // numbers))
    some = -(-systems // parts)
    kept = KeptMemory(
        partial(_memory, some, n, columns, np.dtype(dtype)),
        some * (numbers * np.dtype(dtype).itemsize + _CALL_BYTES),
    )
    starts = overlapping_starts(systems, some)
    parts_of = [slice(first, first + some) for first in starts]
    empty, conjugate, vdot, finite = np.empty, np.conjugate, np.vdot, cmath.isfinite

    def is_solved(memory: _Memory, r: Any, b: Any) -> bool:
        matrices, sides, calls, rows, zeros, _ = memory
        conjugate(r, matrices)
        sides[...] = b
        run_all(starmap(posv, calls))
        return bytes(rows) == zeros

    def solve(r: Any, b: Any) -> Any:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        if some == systems:
            found, x, numbers = is_solved(memory, r, b), memory[1].copy(), memory[-1]
            # One product for solutions and factors, which what is not finite in a pivot reaches.
            sure = numbers.size <= ONE_CORE_DOT and finite(vdot(numbers, numbers))
        else:
            found, x, sure = True, empty(b.shape, b.dtype), False
            for i in parts_of:
                found = found and is_solved(memory, r[i], b[i])
                x[i] = memory[1]
        kept.append(memory)
        return x if found and (sure or (is_finite(x) and has_finite_pivots(r))) else None

    return solve


def overlapping_starts(systems: int, some: int) -> list[int]:
    """Return where parts of ``some`` systems begin, which is at most all of them.

    The last part has as many too: some of its systems are solved twice, to the same bits.
    """
    return [*range(0, systems - some, some), systems - some]


def _memory(systems: int, n: int, columns: int, dtype: np.dtype[Any]) -> _Memory:
    numbers = np.empty(systems * n * (n + columns), dtype)
    matrices = numbers[: systems * n * n].reshape(systems, n, n)
    sides = numbers[systems * n * n :].reshape(systems, columns, n)
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
    return matrices, sides.swapaxes(1, 2), calls, rows, bytes(rows), numbers
