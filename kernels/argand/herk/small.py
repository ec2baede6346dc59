"""Small Hermitian products on the CPU: by herk each, or many by NumPy; mirrored at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.device import available_cores
from argand.gemm.operands import Op
from argand.gemm.pairs import Pairs
from argand.herk.problem import HerkProblem
from argand.runtime.complex_types import PREFIX
from argand.runtime.threads import ONE_CORE

Array = npt.NDArray[Any]
_SMALL_PRODUCT = 1 << 15
"""Products of numbers up to which matmul, of all at once, takes less time than herk of each: half
of the products take as long as a call of it."""
_FEW_ROWS, _LONG_ROW, _LONG_ROWS = 32, 10, 2048
"""Rows up to which dot products of rows take less time than matmul, which fills few of its lanes
and copies all conjugates, and than herk; the least k over n of them; the least numbers of a row of
all matrices, which take longer than the calls of their columns."""
_PANEL_ROWS, _MOST_PANELS = 16, 4
"""Rows of a panel of the lower triangle at least, which fill a tile of matmul's; four leave out
three of eight products, and more of them few more."""
_SHARED_PRODUCTS = 1 << 19
"""Products of numbers from which threads pay: some 100 us on one core."""
_FINISHING = 16
"""Products of numbers that take as long as to make an element of the result Hermitian."""


def is_shared(problem: HerkProblem) -> bool:
    """Return whether products that BLAS computes on one core are worth all of them.

    matmul leaves the interpreter to other threads, SciPy's herk does not.
    """
    square = problem.n * problem.n
    made = problem.batch * square * (problem.k + _FINISHING)
    one_core = square * problem.k <= ONE_CORE
    return problem.batch > 1 and one_core and made >= _SHARED_PRODUCTS and available_cores() > 1


def is_small(problem: HerkProblem) -> bool:
    """Return whether NumPy's products take less time than herk of each."""
    small = problem.n * problem.n * problem.k <= _SMALL_PRODUCT
    return small or is_dotted(problem) or is_shared(problem)


def is_dotted(problem: HerkProblem) -> bool:
    """Return whether dot products of rows take less time than products of matrices."""
    long = problem.k >= _LONG_ROW * problem.n and problem.batch * problem.k >= _LONG_ROWS
    return problem.op == "N" and problem.n <= _FEW_ROWS and problem.batch > 1 and long


def is_plain(problem: HerkProblem, a: Array | Pairs, c: Array | None) -> bool:
    """Return whether BLAS makes the products of a problem, which are only to be mirrored then."""
    if isinstance(a, Pairs) or c is not None or a.dtype != problem.dtype or not a.size:
        return False
    exact = problem.precision is not None and problem.precision.exact_operands
    return exact and problem.alpha == 1 and problem.form == "full"


def by_numpy(problem: HerkProblem, a: Array, out: Array | None = None) -> Any:
    """Return the products of a problem that `is_plain` and `is_small`, in few steps.

    More steps take longer than a small product. ``out`` is contiguous.
    """
    found = lower_by_numpy(problem, a, out)
    mirror_lower(found)
    real_diagonals(found)
    return found


def by_herk(problem: HerkProblem, a: Array, out: Array | None = None) -> Any:
    """Return the products of a problem that `is_plain`, by a call of BLAS's herk each.

    ``out`` is contiguous.
    """
    routine, trans = blas_herk(problem.dtype), trans_of(problem.op)
    found = np.empty((*a.shape[:-2], problem.n, problem.n), a.dtype) if out is None else out
    matrices, products = (x.reshape(-1, *x.shape[-2:]).swapaxes(1, 2) for x in (a, found))
    for matrix, product in zip(matrices, products, strict=True):
        routine(1.0, matrix, 0.0, product, trans, 0, 1)  # lower: 0, overwrite_c: 1
    mirror_lower(found)
    return found


def lower_by_numpy(problem: HerkProblem, a: Array, out: Array | None = None) -> Any:
    """Return op(A) op(A)^H of a problem that `is_small`, void above the diagonal.

    ``a`` is of the result's type.
    """
    n = problem.n
    with np.errstate(all="ignore"):
        if is_dotted(problem):
            return _by_dot_products(a, out)
        conjugate = np.conjugate(a).swapaxes(-1, -2)
        left, right = (a, conjugate) if problem.op == "N" else (conjugate, a)
        large = n * n * problem.k > _SMALL_PRODUCT
        panels = min(_MOST_PANELS, n // _PANEL_ROWS) if large else 1
        return _by_matmul(left, right, panels, out)


def _by_dot_products(a: Array, out: Array | None) -> Any:
    """Return the lower triangles of A A^H, a column of all matrices at a time."""
    found = np.empty((*a.shape[:-1], a.shape[-2]), a.dtype) if out is None else out
    for q in range(a.shape[-2]):
        np.vecdot(a[..., q : q + 1, :], a[..., q:, :], out=found[..., q:, q])
    return found


def _by_matmul(left: Array, right: Array, panels: int, out: Array | None) -> Any:
    """Return the lower triangles of products, by panels of rows up to their last column."""
    if panels <= 1:
        return np.matmul(left, right, out=out)
    n = left.shape[-2]
    found = np.empty((*left.shape[:-1], n), left.dtype) if out is None else out
    step = -(-n // panels)
    for start in range(0, n, step):
        rows, columns = slice(start, start + step), slice(0, start + step)
        np.matmul(left[..., rows, :], right[..., columns], out=found[..., rows, columns])
    return found


def mirror_lower(square: Array) -> None:
    """Write the conjugates of what is below the diagonals of matrices above them."""
    np.copyto(square, np.conjugate(square.swapaxes(-1, -2)), where=above(square.shape[-1]))


def real_diagonals(square: Array) -> None:
    """Make the diagonals of contiguous matrices real."""
    n = square.shape[-1]
    square.reshape(-1, n * n)[:, :: n + 1].imag = 0


def alone(problem: HerkProblem) -> Callable[[Array], Array]:
    """Return what computes the only product of a problem for which `is_plain`, by BLAS's herk.

    herk reads a column-major matrix. It is given A^T and computes C^T, whose upper triangle is the
    lower one of C. NumPy's matmul of a small matrix takes longer. Names of arguments take a call
    longer: beta, C and ``trans`` follow alpha and A.
    """
    routine, rest = blas_herk(problem.dtype), above(problem.n)
    trans, shape = trans_of(problem.op), problem.shape
    flat = len(shape) == 2

    def run(a: Array) -> Array:
        transposed = routine(1.0, a.T if flat else a.reshape(a.shape[-2:]).T, 0.0, None, trans)
        found: Array = transposed.T
        np.copyto(found, np.conjugate(transposed), where=rest)
        return found if flat else found.reshape(shape)

    return run


@lru_cache(maxsize=4)
def blas_herk(dtype: str | np.dtype[Any]) -> Any:
    """Return BLAS's herk for a result's type."""
    from scipy.linalg import blas

    return getattr(blas, f"{PREFIX[str(dtype)]}herk")


def trans_of(op: Op) -> int:
    """Return BLAS's ``trans`` of A^T for op(A): conj(A) A^T of N, A^T conj(A) of C."""
    return 2 if op == "N" else 0


@lru_cache(maxsize=16)
def above(n: int) -> npt.NDArray[np.bool_]:
    """Return where an n by n matrix is above its diagonal."""
    return np.ascontiguousarray(np.tri(n, k=-1, dtype=bool).T)
