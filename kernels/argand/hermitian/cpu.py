"""Cholesky factors by LAPACK, and substitution over all matrices of a batch at a time."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from argand.runtime.complex_types import PREFIX


def solve_hermitian(r: Any, b: Any, leading: tuple[int, ...], info: Any) -> Any:
    """Return x, ``(*leading, n, k)``; arguments and errors as of `argand.solve_hermitian`."""
    if info is None:
        return _substituted(_factored(r), b, leading)
    try:
        factors, rows = _factored(r), np.zeros(r.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        factors, rows = _factored_apart(r)
    info[...] = rows
    found = _substituted(factors, b, leading)
    found[info > 0] = complex(np.nan, np.nan)
    return found


def _factored(r: Any) -> Any:
    """Return L of each R = L L^H (LAPACK's potrf); raise LinAlgError for the first without one."""
    if not r.size:
        return r
    try:
        found = np.linalg.cholesky(r)
    except np.linalg.LinAlgError:
        _refuse(r)
    # Some libraries' potrf lets NaN pass. What is not finite in a lower triangle reaches a pivot.
    if not np.isfinite(np.diagonal(found, axis1=-2, axis2=-1)).all():
        _refuse(r)
    return found


def _factored_apart(r: Any) -> tuple[Any, Any]:
    """Return L of each R, I where there is none, and the row without a pivot, counted from 1."""
    factors, rows = np.empty_like(r, order="C"), np.zeros(r.shape[:-2], np.int32)
    for index in np.ndindex(r.shape[:-2]):
        factors[index], rows[index] = _factor(r[index])
        if rows[index]:
            factors[index] = np.eye(r.shape[-1])
    return factors, rows


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


def _factor(r: Any) -> tuple[Any, int]:
    """Return L of one R, and the row without a pivot, counted from 1; 0 where each has one."""
    from scipy.linalg import lapack

    factor, info = getattr(lapack, f"{PREFIX[str(r.dtype)]}potrf")(r, lower=1)
    beyond = np.flatnonzero(~np.isfinite(np.diagonal(factor)))
    return factor, int(info) or (int(beyond[0]) + 1 if len(beyond) else 0)


def _refuse(r: Any) -> NoReturn:
    """Raise LinAlgError for the first matrix without a factor, with the row of its pivot."""
    for index in np.ndindex(r.shape[:-2]):
        row = _factor(r[index])[1]
        if row:
            raise np.linalg.LinAlgError(
                f"r{list(index) if index else ''} is not positive definite or not finite: no "
                f"positive pivot in row {row - 1}; more diagonal loading may help"
            )
    raise np.linalg.LinAlgError("a matrix of r is not positive definite")
