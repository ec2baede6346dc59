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
"""Products of numbers up to which matmul, of all at once, takes less time than herk of each."""
_ONE_CORE = 1 << 18
"""Products of numbers up to which BLAS computes a complex product on one core (OpenBLAS)."""
_LONG_K = 4
"""k over n from which herk of larger products, half of them, gains as much as a second core."""
_SHARED_PRODUCTS, _SHARED_LARGER = 1 << 19, 1 << 21
"""Products of numbers from which threads pay: some 100 us on one core, and of larger products,
which herk computes in less time on one, some 300 us."""
_FINISHING = 16
"""Products of numbers that take as long as to make an element of the result Hermitian."""


def is_shared(problem: HerkProblem) -> bool:
    """Return whether products that BLAS computes on one core are worth all of them.

    matmul leaves the interpreter to other threads, SciPy's herk does not.
    """
    square = problem.n * problem.n
    each = square * problem.k
    made = problem.batch * square * (problem.k + _FINISHING)
    if each <= _SMALL_PRODUCT:
        return problem.batch > 1 and made >= _SHARED_PRODUCTS
    one_core = each <= _ONE_CORE and problem.k < _LONG_K * problem.n
    return problem.batch > 1 and one_core and made >= _SHARED_LARGER


def is_small(problem: HerkProblem) -> bool:
    """Return whether matmul takes less time than herk of each product."""
    return problem.n * problem.n * problem.k <= _SMALL_PRODUCT or is_shared(problem)


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
