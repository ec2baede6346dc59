"""Small Hermitian systems on the CPU: by LAPACK's factors, then step by step over a batch."""

from __future__ import annotations

import cmath
import math
from functools import lru_cache
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.runtime.complex_types import PREFIX
from argand.runtime.threads import on_all_cores

_BATCHED_ROWS = 16
"""Rows up to which steps over a batch take less time than a call of LAPACK a matrix."""
_FEW_SYSTEMS = 3
"""Systems a row of each up to which the calls of LAPACK still take less time than the steps."""
_LEAST_ROWS = 2048
"""Rows of all systems of a thread that take longer than it takes to start one."""
_LEAST_CHUNK, _CHUNK = 128, 512
"""Systems whose steps are taken together by a thread: enough of them to hide the cost of a step,
few enough to stay in a core's cache."""


def solve_hermitian(r: Any, b: Any, leading: tuple[int, ...], info: Any) -> Any:
    """Return x, ``(*leading, n, k)``; arguments and errors as of `argand.solve_hermitian`."""
    if not leading and b.size:
        alone = _alone(r, b)
        if alone is not None:
            if info is not None:
                info[...] = 0
            return alone
    x, rows = _solved(r, b, leading)
    if info is None and np.count_nonzero(rows):
        index = tuple(int(i) for i in np.argwhere(rows)[0])
        named = index[len(index) - (r.ndim - 2) :]
        raise np.linalg.LinAlgError(
            f"r{list(named) if named else ''} is not positive definite or not finite: no "
            f"positive pivot in row {rows[index] - 1}; more diagonal loading may help"
        )
    if info is not None:
        info[...] = rows
        x[rows > 0] = complex(np.nan, np.nan)
    return x


def _solved(r: Any, b: Any, leading: tuple[int, ...]) -> tuple[Any, Any]:
    """Return x, and of each system the row without a pivot, counted from 1; 0 where all have one.

    What is not finite in a lower triangle reaches a pivot.
    """
    n, columns = b.shape[-2:]
    shape = (*leading, n, columns)
    if 0 in shape:
        return np.empty(shape, b.dtype), np.zeros(leading, np.int32)
    r, b = (_stacked(y, leading) for y in (r, b))
    systems = len(r)
    how, step = _solved_apart, systems
    if n <= _BATCHED_ROWS and systems > _FEW_SYSTEMS * n:
        least = max(_LEAST_CHUNK, _LEAST_ROWS // n)
        how, step = _solved_together, max(min(-(-systems // available_cores()), _CHUNK), least)
    if step >= systems:
        with np.errstate(all="ignore"):  # of systems without a pivot
            x, rows = how(r, b)
        return x.reshape(shape), rows.reshape(leading)
    x, rows = np.empty(b.shape, b.dtype), np.empty(systems, np.int32)

    def work(first: int) -> None:
        some = slice(first, first + step)
        with np.errstate(all="ignore"):
            x[some], rows[some] = how(r[some], b[some])

    on_all_cores(work, range(0, systems, step))
    return x.reshape(shape), rows.reshape(leading)


def _alone(r: Any, b: Any) -> Any:
    """Return the solution of a single system, (n, n) and (n, k), in few steps.

    None where it has no positive or finite pivot, or squares of the solution are beyond the type.
    posv copies both operands, column-major.
    """
    _, x, row = _posv(r.dtype)(r, b, lower=1)
    norm = np.vdot(x, x)  # by BLAS, without warnings
    return None if row or not cmath.isfinite(norm) or not _has_finite_pivots(r) else x


def _has_finite_pivots(r: Any) -> bool:
    """Return whether a diagonal is finite: an infinite pivot leaves a finite solution."""
    return math.isfinite(r.diagonal(0, -2, -1).real.max())


def _stacked(x: Any, leading: tuple[int, ...]) -> Any:
    """Return matrices that are broadcast to some leading axes, along one axis."""
    whole = x if x.shape[:-2] == leading else np.broadcast_to(x, leading + x.shape[-2:])
    return whole.reshape(-1, *x.shape[-2:])


def _solved_together(r: Any, b: Any) -> tuple[Any, Any]:
    """The same for (systems, n, n) and (systems, n, k), a step for all systems at a time.

    The systems are the last axis of the two substitutions, along which NumPy is fast. The factor's
    columns are divided by its diagonal before, so that a step divides by nothing. Where a system
    has no factor, all are solved one by one, which says which.
    """
    try:
        factors = np.linalg.cholesky(r)
    except np.linalg.LinAlgError:
        return _solved_apart(r, b)
    n = r.shape[-1]
    a, x = (np.array(y.transpose(1, 2, 0), order="C") for y in (factors, b))
    reciprocals = 1 / np.einsum("iis->is", a.real)
    if not reciprocals.all():  # an infinite pivot
        return _solved_apart(r, b)
    a *= reciprocals
    products = np.empty_like(x)
    for k in range(n - 1):
        x[k + 1 :] -= np.multiply(a[k + 1 :, k, None], x[k], out=products[k + 1 :])
    for _ in range(2):  # their square may be beyond the type
        x *= reciprocals[:, None]
    np.conj(a, out=a)
    for k in range(n - 1, 0, -1):
        x[:k] -= np.multiply(a[k, :k, None], x[k], out=products[:k])
    if not cmath.isfinite(np.add.reduce(x, axis=None)):
        return _solved_apart(r, b)
    return x.transpose(2, 0, 1), np.zeros(len(r), np.int32)


def _solved_apart(r: Any, b: Any) -> tuple[Any, Any]:
    """The same by LAPACK's posv, which sees the transpose conj(R) of a row-major R.

    Some libraries' let NaN pass, which is then in the solution; an infinite pivot is on R's
    diagonal. Such systems' factors say in which row.
    """
    posv = _posv(r.dtype)
    sides = b.swapaxes(-1, -2).conj().swapaxes(-1, -2)  # column-major, which posv overwrites
    matrices, rows = r.swapaxes(-1, -2), np.zeros(len(r), np.int32)
    for system, (matrix, side) in enumerate(zip(matrices, sides, strict=True)):
        _, found, rows[system] = posv(matrix, side, lower=0, overwrite_b=1)
        if found is not side:
            side[...] = found
    if not (cmath.isfinite(np.add.reduce(sides, axis=None)) and _has_finite_pivots(r)):
        _mark_pivots(posv, matrices, rows)
    return sides.conj(), rows


def _mark_pivots(posv: Any, matrices: Any, rows: Any) -> None:
    """Set the row of the first pivot that is not finite, of systems where no other was found."""
    nothing = np.zeros((matrices.shape[-1], 1), matrices.dtype)
    for system in np.flatnonzero(rows == 0):
        beyond = ~np.isfinite(posv(matrices[system], nothing, lower=0)[0].diagonal())
        if beyond.any():
            rows[system] = beyond.argmax() + 1


@lru_cache(maxsize=2)
def _posv(dtype: np.dtype[Any]) -> Any:
    from scipy.linalg import lapack

    return getattr(lapack, f"{PREFIX[str(dtype)]}posv")
