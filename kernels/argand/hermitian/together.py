"""Many small Hermitian systems on the CPU, a step for all of them at a time."""

from __future__ import annotations

import cmath
from functools import lru_cache
from typing import Any

import numpy as np

_CORNER = {"complex64": 2.0**100, "complex128": 2.0**1000}
"""Largest squares of right-hand sides below a factored matrix, by type: sums of many are finite."""

_FEW_COLUMNS = 4
"""Rows of a system for each right-hand side from which the factorization takes less time for them
than the steps of a substitution."""


def solve_together(r: Any, b: Any) -> Any:
    """Return the solutions of (systems, n, n) and (systems, n, k) by Cholesky.

    None where a system has no factor, an infinite pivot or no finite solution. The systems are the
    last axis of substitutions, along which NumPy is fast. The factor's columns are divided by its
    diagonal before, so that a step divides by nothing.
    """
    n, columns = b.shape[-2:]
    few = _FEW_COLUMNS * columns <= n
    with np.errstate(all="ignore"):  # of systems without a pivot
        try:
            factors = np.linalg.cholesky(_bordered(r, b) if few else r)
        except np.linalg.LinAlgError:
            return None
        a = np.array(factors[..., :n].transpose(1, 2, 0), order="C")
        reciprocals = 1 / np.einsum("iis->is", a[:n].real)
        if not reciprocals.all():  # an infinite pivot
            return None
        a *= reciprocals
        x = a[n:] if few else _forward(a, b, reciprocals)
        for k in range(n - 1, 0, -1):
            x[:, :k] -= a[k, :k] * x[:, k, None]
        return np.conj(x.transpose(2, 1, 0)) if _is_finite(x) else None


def _bordered(r: Any, b: Any) -> Any:
    """Return matrices below which the right-hand sides stand, conjugated, as further rows.

    Of their factors L these are the rows of (L^-1 b)^H: the factorization substitutes forward. The
    corner beside them is the square of a number that no such row reaches, else there is no factor.
    """
    systems, n, columns = b.shape
    # LAPACK may compute with what is above the diagonal, though nothing comes of it.
    found = np.zeros((systems, n + columns, n + columns), r.dtype)
    found[:, :n, :n] = r
    np.conjugate(b.swapaxes(-1, -2), out=found[:, n:, :n])
    found[:, n:, n:] = _corner(columns, str(r.dtype))
    return found


@lru_cache(maxsize=16)
def _corner(columns: int, dtype: str) -> Any:
    return np.eye(columns, dtype=dtype) * _CORNER[dtype]


def _forward(a: Any, b: Any, reciprocals: Any) -> Any:
    """Return the conjugates of D^-1 L^-1 b as (k, n, systems).

    ``a`` is L D^-1 of the factors L with the diagonals D, ``reciprocals`` are those of D.
    """
    x = np.conj(b.transpose(2, 1, 0).copy())
    for k in range(len(reciprocals) - 1):
        x[:, k + 1 :] -= np.conj(a[k + 1 :, k]) * x[:, k, None]
    for _ in range(2):  # their square may be beyond the type
        x *= reciprocals
    return x


def _is_finite(x: Any) -> bool:
    return cmath.isfinite(np.add.reduce(x, axis=None))
