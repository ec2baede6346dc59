"""Small Hermitian products on the CPU: matmul of all at once, then one gather that mirrors them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.pairs import Pairs
from argand.herk.problem import HerkProblem

Array = npt.NDArray[Any]
_SMALL_PRODUCT = 1 << 15
"""Products of numbers up to which matmul, of all at once, takes less time than herk of each, and
BLAS computes a complex product on one core (OpenBLAS)."""


def is_small(problem: HerkProblem) -> bool:
    """Return whether matmul takes less time than herk of each product."""
    return problem.n * problem.n * problem.k <= _SMALL_PRODUCT


def is_plain(problem: HerkProblem, a: Array | Pairs, c: Array | None) -> bool:
    """Return whether matmul makes the products of a problem, which are only to be mirrored then."""
    if isinstance(a, Pairs) or c is not None or a.dtype != problem.dtype or not a.size:
        return False
    exact = problem.precision is not None and problem.precision.exact_operands
    return exact and problem.alpha == 1 and problem.form == "full" and is_small(problem)


def by_matmul(problem: HerkProblem, a: Array, out: Array | None = None) -> Any:
    """Return the products of a problem for which `is_plain`, in few steps.

    More steps take longer than a small product. ``out`` is contiguous.
    """
    n = problem.n
    conjugate = a.conj().swapaxes(-1, -2)
    left, right = (a, conjugate) if problem.op == "N" else (conjugate, a)
    sources, signs = _mirrored(n, a.real.dtype)
    with np.errstate(all="ignore"):
        product = np.matmul(left, right)
        flat = None if out is None else out.reshape(-1, n * n)
        found = product.reshape(-1, n * n).take(sources, axis=1, mode="clip", out=flat)
        components = found.view(signs.dtype)
        components *= signs
    components[:, 1 :: 2 * (n + 1)] = 0
    return found.reshape(product.shape)


@lru_cache(maxsize=16)
def _mirrored(n: int, real: np.dtype[Any]) -> tuple[npt.NDArray[np.intp], Array]:
    """Return where a matrix has its elements in its lower triangle, and signs of components."""
    rows, columns = np.indices((n, n))
    sources = np.maximum(rows, columns) * n + np.minimum(rows, columns)
    signs = np.ones((n, n, 2), real)
    signs[..., 1][rows < columns] = -1
    return sources.ravel(), signs.ravel()
