"""Small Hermitian systems on the CPU: by LAPACK one by one, or step by step over a batch."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.hermitian.cpu_banded import solve_banded
from argand.hermitian.cpu_batched import together
from argand.hermitian.cpu_choice import Way, fastest
from argand.hermitian.cpu_finite import has_finite_pivots, is_finite
from argand.hermitian.cpu_posv import each_by_posv, overlapping_starts
from argand.runtime.cpu.one_core import scipy_on_one_core
from argand.runtime.cpu.scipy_routines import lapack

_CHUNK_NUMBERS = 1 << 16
"""Most numbers of the matrices and right-hand sides whose steps are taken together, which stay in a
core's cache. Threads take longer than one core: a step is so short that they wait for the
interpreter."""
_THREADED_ROWS = 32
"""Rows beyond which LAPACK takes threads by itself."""
_THREADED_PRODUCTS = 1 << 21
"""Multiplications of a system up to which LAPACK is better off on one core: beside other programs
threads take it 6 to 100 ms."""
_LOWER = 1
"""LAPACK's flag of the triangle that it reads; given by its name it takes a call longer."""

Solver = Callable[..., Any]
"""Solves r and b of one form, given ``out`` and ``info`` or None."""


def prepared(r: Any, b: Any, dtype: str, leading: tuple[int, ...]) -> Solver:
    """Return a function that solves systems of the form of r and b, with the errors of the call.

    ``dtype`` is the result's type, ``leading`` are its leading axes.
    """
    vector, casts = b.ndim == 1, r.dtype != dtype or b.dtype != dtype
    sides = (len(b), 1) if vector else b.shape[-2:]
    shape = leading + (b.shape if vector else sides)
    named, systems = r.ndim - 2, math.prod(leading)
    way = fastest(systems, sides[0], sides[1], dtype)
    some = min(systems, _step(systems, *sides)) if way == "steps" else systems
    any_at_all = min(*sides, systems) > 0
    at_once = some == systems and any_at_all
    how = _how(some, sides[0], sides[1], dtype, way) if leading and any_at_all else _alone
    how = _limited(sides[0], sides[1], how)
    as_given = at_once and not vector and not casts and r.shape[:-2] == b.shape[:-2] == leading
    few_axes = not leading or (len(leading) == 1 and systems > 1)
    direct = how if as_given and few_axes else None

    def run(r: Any, b: Any, out: Any = None, info: Any = None) -> Any:
        found = None
        if direct is not None and out is None and info is None:
            found = direct(r, b)
            if found is not None:
                return found
        else:
            if vector:
                b = b[:, None]
            if casts:
                r, b = r.astype(dtype, copy=False), b.astype(dtype, copy=False)
            if at_once:
                found = how(_stacked(r, leading), _stacked(b, leading)) if leading else how(r, b)
        if found is None:
            by = None if some == systems else how
            found, rows = _solved(_stacked(r, leading), _stacked(b, leading), by, some)
            _report(found, rows.reshape(leading), named, info)
        elif info is not None:
            info[...] = 0
        found = found.reshape(shape)
        if out is None:
            return found
        out[...] = found
        return out

    return run


def _step(systems: int, n: int, columns: int) -> int:
    """Return how many systems are solved at a time in steps."""
    n = max(n, 1)  # of empty systems
    chunks = -(-systems // max(1, _CHUNK_NUMBERS // (n * (n + columns))))
    return -(-systems // max(chunks, 1))


def _report(x: Any, rows: Any, named: int, info: Any) -> None:
    """Put into ``info`` what `_solved` found, or raise LinAlgError for a system without a pivot.

    r itself has ``named`` leading axes, which the error names.
    """
    if info is not None:
        info[...] = rows
        x[rows.ravel() > 0] = complex(np.nan, np.nan)
    elif np.count_nonzero(rows):
        index = tuple(int(i) for i in np.argwhere(rows)[0])
        at = index[len(index) - named :]
        raise np.linalg.LinAlgError(
            f"r{list(at) if at else ''} is not positive definite or not finite: no "
            f"positive pivot in row {rows[index] - 1}; more diagonal loading may help"
        )


def _solved(r: Any, b: Any, how: Solver | None, step: int) -> tuple[Any, Any]:
    """Return x, and of each system the row without a pivot, counted from 1; 0 where all have one.

    By ``how`` of ``step`` systems at a time; None where it has not solved all of them at once. What
    is not finite in a lower triangle reaches a pivot.
    """
    systems = len(b)
    if how is None:
        return _solved_apart(r, b)
    x, rows = np.empty(b.shape, b.dtype), np.zeros(systems, np.int32)
    for first in overlapping_starts(systems, step):
        some = slice(first, first + step)
        found = how(r[some], b[some])
        x[some], rows[some] = _solved_apart(r[some], b[some]) if found is None else (found, 0)
    return x, rows


def _how(systems: int, n: int, columns: int, dtype: str, way: Way) -> Callable[[Any, Any], Any]:
    """Return a solver of (systems, n, n) and (systems, n, k) in few steps."""
    if systems <= 1:
        return lambda r, b: _alone(r[0], b[0])
    if way == "band":
        return solve_banded
    return (together if way == "steps" else each_by_posv)(systems, n, columns, dtype)


def _alone(r: Any, b: Any) -> Any:
    """Return the solution of a single system, (n, n) and (n, k), in few steps.

    None where it has no positive or finite pivot, or is not `is_finite`. posv copies both
    operands, column-major.
    """
    _, x, row = lapack("posv", r.dtype)(r, b, _LOWER)
    return None if row or not is_finite(x) or not has_finite_pivots(r) else x


def _limited(n: int, columns: int, how: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function that solves systems as ``how`` does, on one core where that is faster."""
    small = n * n * (columns + n // 3) <= _THREADED_PRODUCTS
    if available_cores() == 1 or n <= _THREADED_ROWS or not small:
        return how
    return partial(scipy_on_one_core, how)


def _stacked(x: Any, leading: tuple[int, ...]) -> Any:
    """Return matrices that are broadcast to some leading axes, along one axis."""
    shape = x.shape
    if shape[:-2] != leading:
        x = np.broadcast_to(x, leading + shape[-2:])
    return x if len(leading) == 1 else x.reshape(math.prod(leading), *shape[-2:])


def _solved_apart(r: Any, b: Any) -> tuple[Any, Any]:
    """Return the solutions by LAPACK's posv, and the row without a pivot of each system.

    Some libraries' let NaN pass, which is then in the solution; an infinite pivot is on R's
    diagonal. Such systems' factors say in which row.
    """
    posv, rows = lapack("posv", r.dtype), np.zeros(len(b), np.int32)
    x = np.empty(b.shape, b.dtype)
    if not b.size:
        return x, rows
    for system, (matrix, sides) in enumerate(zip(r, b, strict=True)):
        _, x[system], rows[system] = posv(matrix, sides, _LOWER)
    with np.errstate(all="ignore"):  # of systems without a pivot
        if not (cmath.isfinite(np.add.reduce(x, axis=None)) and has_finite_pivots(r)):
            _mark_pivots(posv, r, rows)
    return x, rows


def _mark_pivots(posv: Any, matrices: Any, rows: Any) -> None:
    """Set the row of the first pivot that is not finite, of systems where no other was found."""
    nothing = np.zeros((matrices.shape[-1], 1), matrices.dtype)
    for system in np.flatnonzero(rows == 0):
        beyond = ~np.isfinite(posv(matrices[system], nothing, lower=1)[0].diagonal())
        if beyond.any():
            rows[system] = beyond.argmax() + 1
