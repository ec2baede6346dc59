"""Small Hermitian systems on the CPU: by LAPACK's factors, then step by step over a batch."""

from __future__ import annotations

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
    x, rows = _solved(r, b, leading)
    if info is None and rows.any():
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
    x, rows = np.empty((*leading, n, columns), b.dtype), np.zeros(leading, np.int32)
    if not x.size:
        return x, rows
    r, b = (_stacked(y, leading) for y in (r, b))
    to, marks = x.reshape(b.shape), rows.reshape(-1)
    together = n <= _BATCHED_ROWS and len(r) > _FEW_SYSTEMS * n
    step = len(r)
    if together:
        least = max(_LEAST_CHUNK, _LEAST_ROWS // n)
        step = max(min(-(-step // available_cores()), _CHUNK), least)

    def work(first: int) -> None:
        some = slice(first, first + step)
        with np.errstate(all="ignore"):  # of systems without a pivot
            how = _solved_together if together else _solved_apart
            to[some], marks[some] = how(r[some], b[some])

    on_all_cores(work, range(0, len(r), step))
    return x, rows


def _stacked(x: Any, leading: tuple[int, ...]) -> Any:
    """Return matrices that are broadcast to some leading axes, along one axis."""
    whole = x if x.shape[:-2] == leading else np.broadcast_to(x, leading + x.shape[-2:])
    return whole.reshape(-1, *x.shape[-2:])


def _solved_together(r: Any, b: Any) -> tuple[Any, Any]:
    """The same for (systems, n, n) and (systems, n, k), a step for all systems at a time.

    The systems are the last axis of the two substitutions, along which NumPy is fast. Where one has
    no factor, all are solved one by one, which says which.
    """
    try:
        factors = np.linalg.cholesky(r)
    except np.linalg.LinAlgError:
        return _solved_apart(r, b)
    n = r.shape[-1]
    a, x = (np.array(y.transpose(1, 2, 0), order="C") for y in (factors, b))
    diagonals = a[np.arange(n), np.arange(n)].real
    if not np.isfinite(diagonals).all():
        return _solved_apart(r, b)
    reciprocals, products = 1 / diagonals, np.empty_like(x)
    for k in range(n):
        x[k] *= reciprocals[k]
        x[k + 1 :] -= np.multiply(a[k + 1 :, k, None], x[k], out=products[k + 1 :])
    np.conj(a, out=a)
    for k in reversed(range(n)):
        x[k] *= reciprocals[k]
        x[:k] -= np.multiply(a[k, :k, None], x[k], out=products[:k])
    return x.transpose(2, 0, 1), np.zeros(len(r), np.int32)


def _solved_apart(r: Any, b: Any) -> tuple[Any, Any]:
    """The same by LAPACK's posv, which sees the transpose conj(R) of a row-major R.

    Some libraries' let NaN pass, which then is on the factor's diagonal.
    """
    from scipy.linalg import lapack

    posv = getattr(lapack, f"{PREFIX[str(r.dtype)]}posv")
    x, sides = np.empty(b.shape, b.dtype), b.conj()
    rows, diagonals = np.zeros(len(r), np.int32), np.empty(r.shape[:2], r.dtype)
    for system, matrix in enumerate(r):
        factor, x[system], rows[system] = posv(matrix.T, sides[system], lower=0)
        diagonals[system] = factor.diagonal()
    np.conj(x, out=x)
    beyond = ~np.isfinite(diagonals)
    if not beyond.any():
        return x, rows
    found = np.where(beyond.any(axis=1), beyond.argmax(axis=1) + 1, 0)
    return x, np.where(rows > 0, rows, found)
