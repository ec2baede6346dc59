"""Products on the CPU that BLAS makes Hermitian to the bit whole (`cpu_probe`), without a mirror.

Single ones are by NumPy's dot, which takes less time than herk and what mirrors its triangle, and
than matmul; batches are by matmul; of few rows and numbers both may be by `cpu_dot.all_dots`. What
is left are diagonals' imaginary parts, which are not zero where a number is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.operands import Op
from argand.herk.cpu_matmul import weight
from argand.herk.cpu_probe import rows_seen
from argand.herk.problem import HerkProblem
from argand.runtime.cpu.kept_memory import KeptMemory
from argand.runtime.cpu.numpy_blas import openblas_kernels
from argand.runtime.cpu.quiet import quiet_context

Array = npt.NDArray[Any]
_MOST_PRODUCTS = 1 << 14
"""`weight` up to which half the product takes no longer than a mirror; one core takes it all."""
_FEWEST_ROWS, _LEAST_K = 6, 48
"""Rows, or k, from which ``dot`` takes less time: a small triangle is computed by fewer steps."""
_Memory = tuple[Array, Array, Array, Callable[[int], None], Callable[..., Any]]
"""Memory of a call: the conjugates of its operand, and these transposed; the product; what fills
the imaginary parts of its diagonal; what runs a step of NumPy's without warnings."""


def is_alone_by_dot(problem: HerkProblem) -> bool:
    """Return whether `alone_by_dot` takes less time than herk."""
    n, k = problem.n, problem.k
    if problem.batch_shape or min(n, k) < 2 or weight(problem) > _MOST_PRODUCTS:
        return False
    if (n < _FEWEST_ROWS and k < _LEAST_K) or openblas_kernels() is None:
        return False
    return _is_hermitian(n, k, problem.op, problem.dtype)


def alone_by_dot(problem: HerkProblem) -> Callable[..., Array]:
    """Return a function that computes the only product of a problem, with no leading axes."""
    n, k, op, dtype = problem.n, problem.k, problem.op, problem.dtype
    nbytes = n * (n + k) * np.dtype(dtype).itemsize
    kept = KeptMemory(partial(_memory, n, k, op, dtype), nbytes)
    conjugate, dot, by_rows = np.conjugate, np.ndarray.dot, op == "N"

    def run(a: Array, c: Array | None = None) -> Array:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        conjugates, transposed, product, fill_diagonal, run_quietly = memory
        if not a.flags.c_contiguous:
            a = a.copy()
        conjugate(a, conjugates)
        if by_rows:
            run_quietly(dot, a, transposed, product)
        else:
            run_quietly(dot, transposed, a, product)
        fill_diagonal(0)
        found = product.copy()
        kept.append(memory)
        return found

    return run


def _memory(n: int, k: int, op: Op, dtype: str) -> _Memory:
    conjugates = np.empty((n, k) if op == "N" else (k, n), dtype)
    return conjugates, conjugates.T, *_products((n, n), dtype)


def batch_by_matmul(problem: HerkProblem) -> Callable[..., Array]:
    """Return a function that computes the products of a batch by one matmul, in its new memory."""
    batch, n, k, op, dtype = problem.batch, problem.n, problem.k, problem.op, problem.dtype
    nbytes = batch * n * k * np.dtype(dtype).itemsize
    kept = KeptMemory(partial(_conjugates, problem), nbytes)
    conjugate, matmul, view, by_rows = np.conjugate, np.matmul, np.ndarray, op == "N"
    real = np.zeros((), dtype).real.dtype
    part, diagonals = real.itemsize, (batch, n)
    strides = (2 * part * n * n, 2 * part * (n + 1))

    def run(a: Array, c: Array | None = None) -> Array:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        conjugates, transposed, run_quietly = memory
        if not a.flags.c_contiguous:
            a = a.copy()
        conjugate(a, conjugates)
        found: Array = (
            run_quietly(matmul, a, transposed) if by_rows else run_quietly(matmul, transposed, a)
        )
        view(diagonals, real, found, part, strides).fill(0)
        kept.append(memory)
        return found

    return run


def _conjugates(problem: HerkProblem) -> tuple[Array, Array, Callable[..., Any]]:
    """Return memory of conjugates, these transposed, and what runs a step without warnings."""
    sizes = (problem.n, problem.k) if problem.op == "N" else (problem.k, problem.n)
    conjugates = np.empty((*problem.batch_shape, *sizes), problem.dtype)
    return conjugates, conjugates.swapaxes(-1, -2), quiet_context().run


def few_by_dots(problem: HerkProblem) -> Callable[..., Array]:
    """Return a function that computes products of few numbers, Hermitian whole by dot products."""
    nbytes, vecdot = math.prod(problem.shape) * np.dtype(problem.dtype).itemsize, np.vecdot
    kept = KeptMemory(partial(_products, problem.shape, problem.dtype), nbytes)
    each = (slice(None),) * len(problem.batch_shape)
    rows, columns = (*each, None), (*each, slice(None), None)  # the views of `all_dots`

    def run(a: Array, c: Array | None = None) -> Array:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        product, fill_diagonals, run_quietly = memory
        if not a.flags.c_contiguous:
            a = a.copy()
        run_quietly(vecdot, a[rows], a[columns], product)
        fill_diagonals(0)
        found = product.copy()
        kept.append(memory)
        return found

    return run


def _products(
    shape: tuple[int, ...], dtype: str
) -> tuple[Array, Callable[[int], None], Callable[..., Any]]:
    """Return memory of products (..., n, n), and what fills the imaginary parts of their diagonals.

    The last function runs a step of NumPy's without warnings.
    """
    n, products = shape[-1], np.empty(shape, dtype)
    return products, products.reshape(-1, n * n)[:, :: n + 1].imag.fill, quiet_context().run


@lru_cache(maxsize=4096)
def _is_hermitian(n: int, k: int, op: Op, dtype: str) -> bool:
    """Return whether all these products of contiguous operands are Hermitian to the bit."""
    conjugates, transposed, product, *_ = _memory(n, k, op, dtype)

    def steps(a: Array, found: Array) -> None:
        for matrix, result in zip(a, found, strict=True):
            np.conjugate(matrix, conjugates)
            left, right = (matrix, transposed) if op == "N" else (transposed, matrix)
            result[...] = left.dot(right, product)

    return rows_seen(steps, n, k, op, dtype) == n
