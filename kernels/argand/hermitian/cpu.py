"""Small Hermitian systems on the CPU: by LAPACK one by one, or step by step over a batch."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.hermitian.cpu_banded import solve_banded
from argand.hermitian.cpu_batched import solve_together
from argand.hermitian.cpu_block_diagonal import are_diagonal_blocks, diagonal_blocks
from argand.hermitian.cpu_choice import Way, fastest
from argand.hermitian.cpu_finite import has_finite_pivots, is_finite
from argand.runtime.complex_types import PREFIX
from argand.runtime.scipy_blas import on_one_core
from argand.runtime.threads import on_all_cores

_LEAST_ROWS = 2048
"""Rows of all systems of a thread that take longer than it takes to start one."""
_LEAST_CHUNK, _CHUNK, _CHUNK_NUMBERS = 128, 512, 1 << 17
"""Systems whose steps are taken together by a thread, and numbers of their matrices and right-hand
sides: enough systems to hide the cost of a step, few enough to stay in a core's cache."""
_COPIED_VALUES = 1 << 15
"""Numbers of matrices that are copied at a time for LAPACK to write over, in a core's cache."""
_FEW_COPIES = 8
"""Systems up to which LAPACK's own copies of them take less time than copies and conjugates."""
_THREADED_ROWS, _THREADED_PRODUCTS = 32, 1 << 21
"""Rows beyond which LAPACK takes threads by itself, and multiplications of a system up to which it
is better off on one core: beside other programs threads take it 6 to 100 ms."""
_LOWER, _UPPER = 1, 0
"""LAPACK's flag of the triangle that it reads; given by its name it takes a call longer."""

Solver = Callable[..., Any]
"""Solves r and b of one form, given ``out`` and ``info`` or None."""


def prepared(r: Any, b: Any, dtype: str, leading: tuple[int, ...]) -> Solver:
    """Return what solves systems of the form of r and b; errors as of `argand.solve_hermitian`.

    ``dtype`` is the result's type, ``leading`` are its leading axes.
    """
    vector, casts = b.ndim == 1, r.dtype != dtype or b.dtype != dtype
    sides = (len(b), 1) if vector else b.shape[-2:]
    shape = leading + (b.shape if vector else sides)
    named, systems = r.ndim - 2, math.prod(leading)
    shares = max(1, min(available_cores(), systems // _LEAST_CHUNK))
    way = fastest(systems, sides[0], sides[1], dtype, shares)
    many = way == "steps"
    whole = not many or _step(systems, *sides) >= systems
    at_once = whole and min(*sides, systems) > 0
    how = _how(systems, sides[0], sides[1], dtype, way) if leading else _alone
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
            found, rows = _solved(_stacked(r, leading), _stacked(b, leading), many)
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
    """Return how many systems a thread solves at a time in steps."""
    n = max(n, 1)  # of empty systems
    most = min(_CHUNK, _CHUNK_NUMBERS // (n * (n + columns)))
    least = max(_LEAST_CHUNK, _LEAST_ROWS // n)
    return max(min(-(-systems // available_cores()), most), least)


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


def _solved(r: Any, b: Any, many: bool) -> tuple[Any, Any]:
    """Return x, and of each system the row without a pivot, counted from 1; 0 where all have one.

    What is not finite in a lower triangle reaches a pivot.
    """
    systems, n, columns = b.shape
    if not b.size:
        return np.empty(b.shape, b.dtype), np.zeros(systems, np.int32)
    how = solve_together if many else _by_posv
    step = _step(systems, n, columns) if many else systems

    def chunk(r: Any, b: Any) -> tuple[Any, Any]:
        found = how(r, b)
        return _solved_apart(r, b) if found is None else (found, 0)

    rows = np.zeros(systems, np.int32)
    if step >= systems:
        x, rows[:] = chunk(r, b)
        return x, rows
    x = np.empty(b.shape, b.dtype)

    def work(first: int) -> None:
        some = slice(first, first + step)
        x[some], rows[some] = chunk(r[some], b[some])

    on_all_cores(work, range(0, systems, step))
    return x, rows


def _how(systems: int, n: int, columns: int, dtype: str, way: Way) -> Callable[[Any, Any], Any]:
    """Return a solver of (systems, n, n) and (systems, n, k) in few steps."""
    if systems <= 1:
        return lambda r, b: _alone(r[0], b[0])
    if are_diagonal_blocks(systems, n, dtype):
        kind = np.dtype(dtype)
        return diagonal_blocks(systems, n, columns, kind, _posv(kind))
    return {"steps": solve_together, "band": solve_banded, "calls": _by_posv}[way]


def _alone(r: Any, b: Any) -> Any:
    """Return the solution of a single system, (n, n) and (n, k), in few steps.

    None where it has no positive or finite pivot, or is not `is_finite`. posv copies both
    operands, column-major.
    """
    _, x, row = _posv(r.dtype)(r, b, _LOWER)
    return None if row or not is_finite(x) or not has_finite_pivots(r) else x


def _by_posv(r: Any, b: Any) -> Any:
    """Return the solutions of (systems, n, n) and (systems, n, k) by LAPACK; None as `_alone`."""
    x, rows = _each_by_posv(r, b)
    return None if any(rows) or not is_finite(x) or not has_finite_pivots(r) else x


def _each_by_posv(r: Any, b: Any) -> tuple[Any, list[int]]:
    """Return the solutions by a call of posv each, and the row without a pivot, or 0, of each.

    posv reads column-major matrices and writes over them. Of more than few systems it is given
    copies of R^T, which is R's conjugate, with R's lower triangle as its upper one, and solves for
    the conjugate of x.
    """
    posv = _posv(r.dtype)
    if len(r) <= _FEW_COPIES:
        x = b.swapaxes(1, 2).copy()
        rows = _solve_each(posv, r, x, _LOWER, 0)
        return x.swapaxes(1, 2).copy(), rows
    x = np.conjugate(b.swapaxes(1, 2), order="C")
    step = max(1, _COPIED_VALUES // r[0].size)
    rows = []
    for first in range(0, len(r), step):
        some = slice(first, first + step)
        rows += _solve_each(posv, r[some].copy().swapaxes(1, 2), x[some], _UPPER, 1)
    return np.conjugate(x.swapaxes(1, 2), order="C"), rows


def _solve_each(posv: Any, r: Any, x: Any, triangle: int, overwrite: int) -> list[int]:
    """Write the solutions over the right-hand sides (systems, k, n); return rows as above."""
    systems = zip(r, x.swapaxes(1, 2), strict=True)
    return [posv(matrix, sides, triangle, overwrite, 1)[2] for matrix, sides in systems]


def _limited(n: int, columns: int, how: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return what solves systems as ``how`` does, on one core where threads are not worth it."""
    small = n * n * (columns + n // 3) <= _THREADED_PRODUCTS
    if available_cores() == 1 or n <= _THREADED_ROWS or not small:
        return how
    return partial(on_one_core, how)


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
    x, found = _each_by_posv(r, b)
    rows = np.array(found, np.int32)
    with np.errstate(all="ignore"):  # of systems without a pivot
        if not (cmath.isfinite(np.add.reduce(x, axis=None)) and has_finite_pivots(r)):
            _mark_pivots(_posv(r.dtype), r, rows)
    return x, rows


def _mark_pivots(posv: Any, matrices: Any, rows: Any) -> None:
    """Set the row of the first pivot that is not finite, of systems where no other was found."""
    nothing = np.zeros((matrices.shape[-1], 1), matrices.dtype)
    for system in np.flatnonzero(rows == 0):
        beyond = ~np.isfinite(posv(matrices[system], nothing, lower=1)[0].diagonal())
        if beyond.any():
            rows[system] = beyond.argmax() + 1


@lru_cache(maxsize=2)
def _posv(dtype: np.dtype[Any]) -> Any:
    from scipy.linalg import lapack

    return getattr(lapack, f"{PREFIX[str(dtype)]}posv")
