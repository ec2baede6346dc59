"""Products on the CPU that BLAS makes Hermitian to the bit whole (`cpu_probe`), without a mirror.

Those of few rows and numbers are by `cpu_dot.all_dots`, batches of others by one matmul. What is
left are diagonals' imaginary parts, which are not zero where a number is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.herk.problem import HerkProblem
from argand.runtime.cpu.kept_memory import KeptMemory
from argand.runtime.cpu.quiet import quiet_context

Array = npt.NDArray[Any]


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
