"""Many small Hermitian systems on the CPU, a step for all of them at a time.

R = L D L^H without square roots, row by row of D L^H, beside which the right-hand sides stand:
what makes D L^H of R makes L^-1 b of them. The systems are the last axis, along which NumPy is
fast, and a row is finished before the next one begins, so that half of a triangle's steps suffice.

To make the views that a step takes is as long as a step of few numbers. So all steps are listed
with their operands, and kept with their memory where that is not much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from argand.runtime.cpu.kept_memory import KeptMemory
from argand.runtime.cpu.quiet import quiet_context

_MAX_PIVOT: Mapping[str, float] = MappingProxyType({"complex64": 2.0**62, "complex128": 2.0**510})
"""Largest pivot by type, and the reciprocal of the least one: no quotient of a row by it that
matters to a further pivot is below the normal numbers. Others are LAPACK's."""
_MAX_KEPT = 1 << 16
"""Numbers of systems up to which memory is kept."""
_ROW_BYTES = 5 << 10
"""Bytes of the steps of a row, as objects of Python."""
_SKEW = 72
"""Numbers that arrays whose elements are added or multiplied are apart in a page of memory: a
processor takes a load for one of what was stored just before in the same place of another page."""
_FEW_ROWS = 3
"""Rows up to which a step for each takes less time than one that adds their products."""
_Memory = tuple[Any, Any, Any, list[Callable[[], object]], Any]
"""Memory of systems, along its last axis: conjugates of matrices; right-hand sides, systems first;
reciprocals of pivots; the steps; solutions, systems first."""


def together(systems: int, n: int, columns: int, dtype: str) -> Callable[[Any, Any], Any]:
    """Return a solver of (systems, n, n) and (systems, n, k), none of them 0.

    It returns None where a pivot is not positive, not finite or too far from 1. No number of a
    system reaches another one, and none of a right-hand side another one's solution.
    """
    numbers, most = systems * n * (n + columns), _MAX_PIVOT[dtype]
    is_kept, least = numbers <= _MAX_KEPT, 1 / most
    make = partial(_memory, systems, n, columns, np.dtype(dtype))
    kept = KeptMemory(make, 3 * numbers * np.dtype(dtype).itemsize + n * _ROW_BYTES)
    conjugate = np.conjugate
    least_of, most_of = np.minimum.reduce, np.maximum.reduce

    def solve(r: Any, b: Any) -> Any:
        if is_kept:
            try:
                memory = kept.pop()
            except IndexError:
                memory = kept.new()
        else:
            memory = make()
        matrices, sides, diagonals, steps, solutions = memory
        conjugate(r.T, matrices)
        sides[...] = b
        quiet_context().run(_run, steps)
        found = None
        if least <= least_of(diagonals, None) and most_of(diagonals, None) <= most:
            found = solutions.copy("C")
        if is_kept:
            kept.append(memory)
        return found

    return solve


def _run(steps: list[Callable[[], object]]) -> None:
    for step in steps:
        step()


def _memory(systems: int, n: int, columns: int, dtype: np.dtype[Any]) -> _Memory:
    # Rows of D L^H, then of L^H; numbers left of the diagonal may be anything and are not read.
    a = np.empty((n, n + columns, systems), dtype)
    above = np.empty((n, n, systems), dtype)  # conjugates of rows of D L^H
    # Solutions lie apart: a step takes less time on what is contiguous.
    x = np.empty((n, columns, systems), dtype)
    reciprocals = np.zeros((n, systems), dtype)  # complex, as NumPy would convert them otherwise
    diagonals, pivots = reciprocals.real, a.real
    most = systems * max(row * (n + columns - row) for row in range(n))
    products = np.empty(_SKEW + most, dtype)[_SKEW:]
    sums = np.empty(2 * _SKEW + a[0].size, dtype)[2 * _SKEW :].reshape(a[0].shape)
    steps: list[Callable[[], object]] = []

    def add(function: Callable[..., object], *operands: Any) -> None:
        if operands[-1].size:
            steps.append(partial(function, *operands))

    def product(x: Any, y: Any) -> Any:
        shape = len(x), y.shape[-2], systems
        found = products[: shape[0] * shape[1] * systems].reshape(shape)
        add(np.multiply, x, y, found)
        return found

    for row in range(n):
        left, right = a[row, row:], a[row, row + 1 :]
        some = product(above[:row, row, None], a[:row, row:]) if row else []
        if row > _FEW_ROWS:
            add(np.add.reduce, some, 0, None, sums[row:])
            some = sums[None, row:]
        for one in some:
            add(np.subtract, left, one, left)
        add(np.reciprocal, pivots[row, row], diagonals[row])
        add(np.conjugate, right[: n - 1 - row], above[row, row + 1 :])
        add(np.multiply, right, reciprocals[row], right)
    add(np.copyto, x, a[:, n:])
    for row in range(n - 1, 0, -1):
        add(np.subtract, x[:row], product(a[:row, row, None], x[row]), x[:row])
    sides, solutions = (rows.transpose(2, 0, 1) for rows in (a[:, n:], x))
    return a[:, :n], sides, diagonals, steps, solutions
