"""Small Hermitian systems on the CPU: by LAPACK a matrix, or row by row over a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from argand.runtime.complex_types import PREFIX

_BATCHED_ROWS = 24
"""Rows up to which substitution over a batch takes less time than a call of LAPACK a matrix."""


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

    What is not finite in a lower triangle reaches a pivot, where some libraries let it pass.
    """
    if r.size and r.shape[-1] <= _BATCHED_ROWS:
        try:
            factors = np.linalg.cholesky(r)
        except np.linalg.LinAlgError:
            return _solved_apart(r, b, leading)
        if np.isfinite(np.diagonal(factors, axis1=-2, axis2=-1)).all():
            return _substituted(factors, b, leading), np.zeros(leading, np.int32)
    return _solved_apart(r, b, leading)


def _solved_apart(r: Any, b: Any, leading: tuple[int, ...]) -> tuple[Any, Any]:
    """The same by LAPACK's posv, which sees the transpose conj(R) of a row-major R."""
    from scipy.linalg import lapack

    posv = getattr(lapack, f"{PREFIX[str(r.dtype)]}posv")
    x, rows = np.empty((*leading, *b.shape[-2:]), b.dtype), np.zeros(leading, np.int32)
    if not x.size:
        return x, rows
    r, b = (np.broadcast_to(y, leading + y.shape[-2:]) for y in (r, b))
    for index in np.ndindex(leading):
        factor, found, info = posv(r[index].T, b[index].conj(), lower=0)
        x[index] = found.conj()
        beyond = np.flatnonzero(~np.isfinite(np.diagonal(factor)))
        rows[index] = info or (beyond[0] + 1 if len(beyond) else 0)
    return x, rows


def _substituted(factors: Any, b: Any, leading: tuple[int, ...]) -> Any:
    """Return x of L L^H x = b, ``(*leading, n, k)``, for factors L and b whose axes broadcast."""
    n, columns = b.shape[-2:]
    x = np.empty((*leading, n, columns), b.dtype)
    if not x.size:
        return x
    pivots = np.diagonal(factors, axis1=-2, axis2=-1).real
    for i in range(n):
        known = (factors[..., i : i + 1, :i] @ x[..., :i, :])[..., 0, :]
        x[..., i, :] = (b[..., i, :] - known) / pivots[..., i, None]
    for i in reversed(range(n)):
        column = factors[..., i + 1 :, i].conj()[..., None, :]
        known = (column @ x[..., i + 1 :, :])[..., 0, :]
        x[..., i, :] = (x[..., i, :] - known) / pivots[..., i, None]
    return x
