"""Lower triangles of Hermitian products on the CPU: by dot products, matmul, or herk of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.device import available_cores
from argand.gemm.operands import Op
from argand.herk.problem import HerkProblem
from argand.runtime.complex_types import PREFIX
from argand.runtime.quiet import quietly
from argand.runtime.scratch import with_conjugates
from argand.runtime.threads import ONE_CORE_COMPLEX

Array = npt.NDArray[Any]
Steps = Callable[[Array, Array], Any]
"""Computes the lower triangles of products of matrices, (..., n, k) after their op, in contiguous
memory; what is above the diagonals is left to chance."""
_FEW_ROWS, _LONG_ROW, _LONG_ROWS = 32, 10, 2048
"""Rows up to which dot products of rows take less time than matmul, which fills few of its lanes
and copies all conjugates, and than herk; the least k over n of them; the least numbers of a row of
all matrices, which take longer than the calls of their columns."""
_PANEL_ROWS, _FEW_PANELS = 12, 5
"""Rows of a panel of the lower triangle at least, and panels up to which more of them take less
time: those of 48 rows leave out three of eight products."""
_LANES = 4
"""Panels have a multiple of so many rows: BLAS takes longer for what is left of others."""
_LARGE_PANEL, _MOST_PANELS = 64, 16
"""Rows of a panel where there are more than five of them, and most panels."""
_LEAST_ROWS = 20
"""Rows from which two panels take less time than the product of all."""
_THREADED_PANELS, _THREADED_PRODUCTS, _LARGE_PRODUCT = 3, 1 << 18, 1 << 24
"""Panels that threads of BLAS share each, and products of numbers of one at least, some 30 us on
one core; those of a matrix that is worth more panels."""
_PANEL_PRODUCTS = 1 << 16
"""Products of numbers of all matrices that are worth the call of a panel more."""
_HERK_ROWS, _HERK_BYTES = 56, 24 << 10
"""Rows, or bytes of a matrix of the operand, from which a call of herk takes less time than panels,
which read it again for each."""
_ALONE_PRODUCTS = 59_296
"""n (n + 1) k up to which OpenBLAS's herk takes one core. NumPy and SciPy have a BLAS each, whose
threads spin for some 30 ms after a product: on few cores those of one wait for the other's."""
_SHARED_PRODUCTS = 1 << 22
"""Products of numbers from which threads of our own pay: some 400 us on one core. They wait for the
spinning threads of BLAS."""
_FINISHING = 16
"""Products of numbers that take as long as to make an element of the result Hermitian."""


def lower_of(problem: HerkProblem) -> Steps:
    """Return what computes the lower triangles of a problem, of operands of the result's type."""
    if is_dotted(problem):
        return partial(quietly, _by_dot_products)
    if not is_multiplied(problem):
        return partial(_by_herk, trans_of(problem.op))
    op, rows = problem.op, _panel_rows(problem)
    return lambda a, out: quietly(with_conjugates, _by_matmul, a, op, rows, out)


def is_multiplied(problem: HerkProblem) -> bool:
    """Return whether matmul computes a problem, and not dot products or BLAS's herk."""
    nbytes = problem.n * problem.k * np.dtype(problem.dtype).itemsize
    little = problem.n < _HERK_ROWS and nbytes <= _HERK_BYTES
    several = problem.batch > 1 and (little or is_shared(problem))
    return (several and not is_dotted(problem)) or _is_threaded(problem)


def is_dotted(problem: HerkProblem) -> bool:
    """Return whether dot products of rows take less time than products of matrices."""
    long = problem.k >= _LONG_ROW * problem.n and problem.batch * problem.k >= _LONG_ROWS
    return problem.op == "N" and problem.n <= _FEW_ROWS and problem.batch > 1 and long


def _is_threaded(problem: HerkProblem) -> bool:
    """Return whether BLAS's herk would take threads of SciPy's beside those of NumPy's products."""
    return available_cores() > 1 and problem.n * (problem.n + 1) * problem.k > _ALONE_PRODUCTS


def is_shared(problem: HerkProblem) -> bool:
    """Return whether products that BLAS computes on one core each are worth all of them.

    matmul leaves the interpreter to other threads, SciPy's herk does not; dot products are too many
    calls.
    """
    if problem.batch == 1 or available_cores() == 1 or is_dotted(problem):
        return False
    made = problem.batch * problem.n * problem.n * (problem.k + _FINISHING)
    one_core = _panel_rows(problem) * problem.n * problem.k <= ONE_CORE_COMPLEX
    return made >= _SHARED_PRODUCTS and one_core


def _panel_rows(problem: HerkProblem) -> int:
    """Return how many rows of a triangle matmul computes at a time.

    These are all n where more calls cost more time than they save. Where threads of BLAS share each
    product, the panels are few: beside other work each waits for the slowest thread.
    """
    n, k = problem.n, problem.k
    rows = max(_PANEL_ROWS, min(-(-n // _FEW_PANELS), _LARGE_PANEL), -(-n // _MOST_PANELS))
    made, more = problem.batch * n * n * k, -(-n // rows) - 1
    if n < _LEAST_ROWS or made < more * _PANEL_PRODUCTS:
        return n
    if available_cores() > 1 and rows * n * k > ONE_CORE_COMPLEX:
        rows = max(rows, -(-_THREADED_PRODUCTS // (n * k)))
        if n * n * k < _LARGE_PRODUCT:
            rows = max(rows, -(-n // _THREADED_PANELS))
    return min(n, rows + -rows % _LANES)


def _by_dot_products(a: Array, out: Array) -> None:
    """Compute A A^H, a column of all matrices at a time."""
    for q in range(a.shape[-2]):
        np.vecdot(a[..., q : q + 1, :], a[..., q:, :], out=out[..., q:, q])


def _by_matmul(conjugates: Array, a: Array, op: Op, rows: int, out: Array) -> None:
    """Compute products by panels of rows up to their last column."""
    conjugate = conjugates.swapaxes(-1, -2)
    left, right = (a, conjugate) if op == "N" else (conjugate, a)
    if rows >= out.shape[-1]:
        np.matmul(left, right, out=out)
        return
    for start in range(0, out.shape[-1], rows):
        end = start + rows
        np.matmul(left[..., start:end, :], right[..., :end], out=out[..., start:end, :end])


def _by_herk(trans: int, a: Array, out: Array) -> None:
    """Compute products by a call of herk each, which reads a column-major matrix.

    It is given A^T and computes C^T, whose upper triangle is the lower one of C.
    """
    routine, matrices = blas_herk(a.dtype), a.reshape(-1, *a.shape[-2:]).swapaxes(1, 2)
    for matrix, product in zip(matrices, out.reshape(-1, *out.shape[-2:]), strict=True):
        routine(1.0, matrix, 0.0, product.T, trans, 0, 1)  # lower: 0, overwrite_c: 1


@lru_cache(maxsize=4)
def blas_herk(dtype: str | np.dtype[Any]) -> Any:
    """Return BLAS's herk for a result's type."""
    from scipy.linalg import blas

    return getattr(blas, f"{PREFIX[str(dtype)]}herk")


def trans_of(op: Op) -> int:
    """Return BLAS's ``trans`` of A^T for op(A): conj(A) A^T of N, A^T conj(A) of C."""
    return 2 if op == "N" else 0
