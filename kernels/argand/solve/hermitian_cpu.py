"""Cholesky factors by LAPACK, and substitution over all matrices of a batch at a time."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from argand.solve.library import PREFIX


def factored(r: Any) -> Any:
    """Return L of each R = L L^H (LAPACK's potrf); arguments and errors as of `solve_hermitian`."""
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


def substituted(factors: Any, b: Any, leading: tuple[int, ...]) -> Any:
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


def _refuse(r: Any) -> NoReturn:
    """Raise LinAlgError for the first matrix without a factor, with the row of its pivot."""
    from scipy.linalg import lapack

    potrf = getattr(lapack, f"{PREFIX[str(r.dtype)]}potrf")
    for index in np.ndindex(r.shape[:-2]):
        factor, info = potrf(r[index], lower=1)
        beyond = np.flatnonzero(~np.isfinite(np.diagonal(factor)))
        if info > 0 or len(beyond):
            row = info - 1 if info > 0 else int(beyond[0])
            raise np.linalg.LinAlgError(
                f"r{list(index) if index else ''} is not positive definite or not finite: no "
                f"positive pivot in row {row}; more diagonal loading may help"
            )
    raise np.linalg.LinAlgError("a matrix of r is not positive definite")
