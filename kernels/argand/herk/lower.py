"""Lower triangles of Hermitian products on the CPU: by dot products, matmul, or herk of each."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.device import available_cores
from argand.gemm.operands import Op
from argand.herk.dotted import dotted, takes_threads
from argand.herk.problem import HerkProblem
from argand.runtime.complex_types import PREFIX
from argand.runtime.scratch import LEAST_KEPT_BYTES, with_conjugates
from argand.runtime.threads import ONE_CORE_COMPLEX

Array = npt.NDArray[Any]
Steps = Callable[[Array, Array], Any]
"""Computes the lower triangles of products of matrices, (..., n, k) after their op, in contiguous
memory; values above the diagonals are undefined."""
_BLAS_CALL, _STEP = 3_300, 15_700
"""Time of a call of BLAS for a small product on one core, 0.25 us, and of a step of NumPy that
calls it for all matrices; counted in complex64 multiplications, as all costs here."""
_THREADED_CALL = 70_000
"""Time of a call that two threads of BLAS share, 3.5 us."""
_PANEL_ROWS, _MOST_PANELS, _MOST_THREADED_PANELS, _LARGE_PANEL = 8, 6, 4, 64
"""Fewest rows of a panel; most panels, on one core and shared by threads of BLAS, except where each
has `_LARGE_PANEL` rows."""
_LANES, _THREADED_LANES = 4, 16
"""Rows of a panel are a multiple of this: BLAS is slower at rows that do not fill its lanes."""
_HERK_ROWS, _HERK_BYTES = 56, 24 << 10
"""Rows, or bytes of one operand matrix, from which herk is faster than panels, each of which reads
the matrix again."""
_ALONE_PRODUCTS = 59_296
"""n (n + 1) k up to which OpenBLAS's herk takes one core. NumPy and SciPy have a BLAS each, whose
threads spin for some 30 ms after a product: on few cores those of one wait for the other's."""
_MOST_PARTS = 4
"""A single product up to so many times `_ALONE_PRODUCTS` is computed by herk in parts of k, one
after another on a core: threads are no faster, and beside other work they wait for milliseconds."""
_SHARED_PRODUCTS = 1 << 22
"""Multiplications from which threads of our own pay: some 200 us on one core. They start within
40 us, and wait for the spinning threads of BLAS."""
_FINISHING = 16
"""Time to make one element of the result Hermitian, in multiplications."""


def lower_of(problem: HerkProblem) -> Steps:
    """Return what computes the lower triangles of a problem, of operands of the result's type."""
    by_dots = dotted(problem)
    if by_dots is not None:
        return by_dots
    if not is_multiplied(problem):
        if problem.batch == 1 and herk_parts(problem) > 1:
            return partial(_by_herk_in_parts, trans_of(problem.op), _one_core_length(problem))
        return partial(_by_herk, trans_of(problem.op))
    op, rows = problem.op, _panel_rows(problem)
    if rows >= problem.n and problem.batch * _nbytes(problem) < LEAST_KEPT_BYTES:
        return _whole if op == "N" else _whole_of_columns
    return lambda a, out: with_conjugates(_by_matmul, a, op, rows, out)


def is_multiplied(problem: HerkProblem) -> bool:
    """Return whether matmul computes a problem, and not dot products or BLAS's herk."""
    little = problem.n < _HERK_ROWS and _nbytes(problem) <= _HERK_BYTES
    several = problem.batch > 1 and (little or is_shared(problem))
    return (several and dotted(problem) is None) or _is_threaded(problem)


def _nbytes(problem: HerkProblem) -> int:
    """Return the bytes of a matrix of the operand."""
    return problem.n * problem.k * np.dtype(problem.dtype).itemsize


def _is_threaded(problem: HerkProblem) -> bool:
    """Return whether BLAS's herk would take threads of SciPy's beside those of NumPy's products."""
    return herk_parts(problem) > (_MOST_PARTS if problem.batch == 1 else 1)


def herk_parts(problem: HerkProblem) -> int:
    """Return in how many parts of k BLAS's herk takes one core each, too many if it never does."""
    if available_cores() == 1:
        return 1
    length = _one_core_length(problem)
    return -(-problem.k // length) if length else _MOST_PARTS + 1


def _one_core_length(problem: HerkProblem) -> int:
    """Return the k up to which BLAS's herk takes one core; 0 where it never does."""
    return _ALONE_PRODUCTS // max(1, problem.n * (problem.n + 1))


def is_shared(problem: HerkProblem) -> bool:
    """Return whether products that BLAS computes on one core each are worth all of them.

    matmul leaves the interpreter to other threads, SciPy's herk does not; dot products are too many
    calls.
    """
    if problem.batch == 1 or available_cores() == 1 or dotted(problem) is not None:
        return False
    made = problem.batch * problem.n * problem.n * (problem.k + _FINISHING)
    one_core = _one_core_rows(problem) * problem.n * problem.k <= ONE_CORE_COMPLEX
    return made >= _SHARED_PRODUCTS and one_core


def _panel_rows(problem: HerkProblem) -> int:
    """Return how many rows of a triangle matmul computes at a time."""
    if not takes_threads(problem) or is_shared(problem):
        return _one_core_rows(problem)
    return _rows(problem, _THREADED_CALL, _MOST_THREADED_PANELS, _THREADED_LANES)


def _one_core_rows(problem: HerkProblem) -> int:
    return _rows(problem, _BLAS_CALL + _STEP / max(1, problem.batch), _MOST_PANELS, _LANES)


def _rows(problem: HerkProblem, call: float, most: int, lanes: int) -> int:
    """Return the rows of panels that take the least time, where each adds the time of a call.

    p panels take (1 + 1 / p) / 2 of the product and p calls.
    """
    n, products = problem.n, problem.n * problem.n * problem.k
    if problem.dtype == "complex128":
        products *= 2
    panels = min(round(math.sqrt(products / (2 * call))), max(most, n // _LARGE_PANEL))
    rows = max(_PANEL_ROWS, -(-n // max(1, panels)))
    return min(n, rows + -rows % lanes)


def _by_matmul(conjugates: Array, a: Array, op: Op, rows: int, out: Array) -> None:
    """Compute products by panels of rows up to their last column."""
    conjugate = conjugates.swapaxes(-1, -2)
    left, right = (a, conjugate) if op == "N" else (conjugate, a)
    if rows >= out.shape[-1]:
        np.matmul(left, right, out=out)
        return
    matmul = np.matmul
    for start in range(0, out.shape[-1], rows):
        end = start + rows
        matmul(left[..., start:end, :], right[..., :end], out[..., start:end, :end])


def _whole(a: Array, out: Array) -> None:
    np.matmul(a, np.conjugate(a).swapaxes(-1, -2), out)


def _whole_of_columns(a: Array, out: Array) -> None:
    np.matmul(np.conjugate(a).swapaxes(-1, -2), a, out)


def _by_herk(trans: int, a: Array, out: Array) -> None:
    """Compute products by a call of herk each, which reads a column-major matrix.

    It is given A^T and computes C^T, whose upper triangle is the lower one of C.
    """
    routine, matrices = blas_herk(a.dtype), a.reshape(-1, *a.shape[-2:]).swapaxes(1, 2)
    for matrix, product in zip(matrices, out.reshape(-1, *out.shape[-2:]), strict=True):
        routine(1.0, matrix, 0.0, product.T, trans, 0, 1)  # lower: 0, overwrite_c: 1


def _by_herk_in_parts(trans: int, step: int, a: Array, out: Array) -> None:
    """Compute the only product by calls of herk for ``step`` of k each, which are added."""
    routine, n = blas_herk(a.dtype), out.shape[-1]
    matrix, product = a.reshape(a.shape[-2:]).T, out.reshape(n, n).T
    rows = matrix if trans else matrix.T  # of k
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        routine(1.0, some if trans else some.T, float(start > 0), product, trans, 0, 1)


@lru_cache(maxsize=4)
def blas_herk(dtype: str | np.dtype[Any]) -> Any:
    """Return BLAS's herk for a result's type."""
    from scipy.linalg import blas

    return getattr(blas, f"{PREFIX[str(dtype)]}herk")


def trans_of(op: Op) -> int:
    """Return BLAS's ``trans`` of A^T for op(A): conj(A) A^T of N, A^T conj(A) of C."""
    return 2 if op == "N" else 0
