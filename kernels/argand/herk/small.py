"""Small Hermitian products on the CPU: by herk of one, by matmul of many, mirrored at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.operands import Op
from argand.gemm.pairs import Pairs
from argand.herk.problem import HerkProblem
from argand.runtime.complex_types import PREFIX
from argand.runtime.threads import ONE_CORE

Array = npt.NDArray[Any]
_SMALL_PRODUCT = 1 << 17
"""Products of numbers up to which matmul, of all at once, takes less time than herk of each."""
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
    one_core = each <= ONE_CORE and problem.k < _LONG_K * problem.n
    return problem.batch > 1 and one_core and made >= _SHARED_LARGER


def is_small(problem: HerkProblem) -> bool:
    """Return whether matmul takes less time than herk of each product."""
    return problem.n * problem.n * problem.k <= _SMALL_PRODUCT or is_shared(problem)


def is_plain(problem: HerkProblem, a: Array | Pairs, c: Array | None) -> bool:
    """Return whether BLAS makes the products of a problem, which are only to be mirrored then."""
    if isinstance(a, Pairs) or c is not None or a.dtype != problem.dtype or not a.size:
        return False
    exact = problem.precision is not None and problem.precision.exact_operands
    return exact and problem.alpha == 1 and problem.form == "full"


def by_matmul(problem: HerkProblem, a: Array, out: Array | None = None) -> Any:
    """Return the products of a problem that `is_plain` and `is_small`, in few steps.

    More steps take longer than a small product. ``out`` is contiguous.
    """
    n = problem.n
    conjugate = np.conjugate(a).swapaxes(-1, -2)
    left, right = (a, conjugate) if problem.op == "N" else (conjugate, a)
    with np.errstate(all="ignore"):
        found = np.matmul(left, right, out=out)
    mirror_lower(found)
    found.reshape(-1, n * n)[:, :: n + 1].imag = 0
    return found


def mirror_lower(square: Array) -> None:
    """Write the conjugates of what is below the diagonals of matrices above them."""
    np.copyto(square, np.conjugate(square.swapaxes(-1, -2)), where=above(square.shape[-1]))


def alone(problem: HerkProblem) -> Callable[[Array], Array]:
    """Return what computes the only product of a problem for which `is_plain`, by BLAS's herk.

    herk reads a column-major matrix. It is given A^T and computes C^T, whose upper triangle is the
    lower one of C. NumPy's matmul of a small matrix takes longer.
    """
    routine, rest = blas_herk(problem.dtype), above(problem.n)
    trans, shape = trans_of(problem.op), problem.shape
    flat = len(shape) == 2

    def run(a: Array) -> Array:
        transposed = routine(1.0, (a if flat else a.reshape(a.shape[-2:])).T, trans=trans)
        found: Array = transposed.T
        np.copyto(found, np.conjugate(transposed), where=rest)
        return found if flat else found.reshape(shape)

    return run


@lru_cache(maxsize=2)
def blas_herk(dtype: str) -> Any:
    """Return BLAS's herk for a result's type."""
    from scipy.linalg import blas

    return getattr(blas, f"{PREFIX[dtype]}herk")


def trans_of(op: Op) -> int:
    """Return BLAS's ``trans`` of A^T for op(A): conj(A) A^T of N, A^T conj(A) of C."""
    return 2 if op == "N" else 0


@lru_cache(maxsize=16)
def above(n: int) -> npt.NDArray[np.bool_]:
    """Return where an n by n matrix is above its diagonal."""
    return np.ascontiguousarray(np.tri(n, k=-1, dtype=bool).T)
