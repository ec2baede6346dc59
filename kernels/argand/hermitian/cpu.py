"""Small Hermitian systems on the CPU: by LAPACK a matrix, or step by step over a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from argand.runtime.complex_types import PREFIX

_BATCHED_ROWS = 10
"""Rows up to which steps over a batch take less time than a call of LAPACK a matrix."""
_CHUNK_BYTES = 1 << 19
"""Of matrices whose steps are taken together, so that they stay in a core's cache."""
_PIVOTS = {"complex64": 2.0**126, "complex128": 2.0**1022}
"""Largest pivot, and one over the smallest, whose reciprocals are normal numbers."""


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
    r, b = (np.broadcast_to(y, leading + y.shape[-2:]).reshape(-1, *y.shape[-2:]) for y in (r, b))
    to, marks = x.reshape(b.shape), rows.reshape(-1)
    together = n <= _BATCHED_ROWS
    step = max(1, _CHUNK_BYTES // (n * n * r.itemsize)) if together else len(r)
    for first in range(0, len(r), step):
        some = slice(first, first + step)
        with np.errstate(all="ignore"):  # of systems without a pivot
            how = _solved_together if together else _solved_apart
            to[some], marks[some] = how(r[some], b[some])
    return x, rows


def _solved_together(r: Any, b: Any) -> tuple[Any, Any]:
    """The same for (systems, n, n) and (systems, n, k), a step for all systems at a time.

    R = L D L^H without square roots, as the kernel for GPUs computes it; the systems are the last
    axis, along which NumPy is fast.
    """
    n, limit = r.shape[-1], _PIVOTS[str(r.dtype)]
    a = np.where(np.tri(n, dtype=bool)[:, :, None], r.transpose(1, 2, 0), 0)
    x = np.array(b.transpose(1, 2, 0), order="C")
    reciprocals = np.empty((n, len(r)), a.real.dtype)
    for k in range(n):
        d = a[k, k].real
        reciprocals[k] = np.where((d >= 1 / limit) & (d <= limit), 1 / d, np.nan)
        v = a[k + 1 :, k]
        l = v * reciprocals[k]  # noqa: E741
        for j, conjugate in enumerate(v.conj()):
            a[k + 1 + j :, k + 1 + j] -= l[j:] * conjugate
        x[k + 1 :] -= l[:, None] * x[k]
    for k in reversed(range(n)):
        x[k] *= reciprocals[k]
        x[:k] -= a[k, :k, None].conj() * x[k]
    without = np.isnan(reciprocals)
    return x.transpose(2, 0, 1), np.where(without.any(axis=0), without.argmax(axis=0) + 1, 0)


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
    beyond = ~np.isfinite(diagonals)
    found = np.where(beyond.any(axis=1), beyond.argmax(axis=1) + 1, 0)
    return np.conj(x, out=x), np.where(rows > 0, rows, found)
