"""Full products A A^H by NumPy's matmul on one core, and their rows that need no mirror.

Where BLAS computes element (i, j) by the same steps as (j, i), both have the same bits but for the
sign of the imaginary part. OpenBLAS's kernels do so in whole tiles: those for AVX-512 in 8 rows of
complex64 and 4 of complex128, Haswell's in fewer rows than their tile. No library promises that, so
it is seen by products of random numbers of the same shape.

What is relied on is that these show the steps of every other product: that OpenBLAS chooses an
element's steps by its place, by the shape, the transposes and the strides of operands, by its
kernels and its number of threads, and not by numbers or addresses. It does, because it packs both
operands, and compares none of their numbers. All these are the same here: operands are contiguous
and the shape is, kernels are chosen as NumPy is imported, and products are so small that OpenBLAS
takes one core for them whatever its number of threads is, which may change between calls.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.operands import Op
from argand.herk.problem import HerkProblem
from argand.runtime.numpy_blas import openblas_kernels, openblas_threads
from argand.runtime.threads import ONE_CORE_COMPLEX

Array = npt.NDArray[Any]
_FEWEST_MATRICES, _ROWS, _NUMBERS = 8, 512, 1 << 16
"""Fewest products that are compared; more have together up to so many rows, and operands of so many
numbers, which take some milliseconds. Sums of two terms by other steps have other bits in two of
five elements, longer ones in more, and by fused steps hardly a diagonal is real."""
_TILE_ROWS, _MOST_PANELS = 16, 2
"""Rows that panels are a multiple of, so that BLAS's tiles are those of the whole product; most
panels, as BLAS packs all columns again for each."""


def weight(problem: HerkProblem) -> int:
    """Return the multiplications of a full product of one matrix, in those of complex64."""
    products = problem.n * problem.n * problem.k
    return 2 * products if problem.dtype == "complex128" else products


def rows_on_one_core(problem: HerkProblem) -> int:
    """Return how many rows of a product BLAS computes at a time on one core; 0 are too few."""
    n, products = problem.n, weight(problem)
    if products <= ONE_CORE_COMPLEX:
        return n
    rows = ONE_CORE_COMPLEX * n // products
    rows -= rows % _TILE_ROWS
    return rows if rows * _MOST_PANELS >= n else 0


def full_product(op: Op, rows: int, n: int) -> Callable[[Array, Array], None]:
    """Return what writes op(A) op(A)^H of n rows by matmul, so many rows at a time."""
    if rows < n:
        return partial(_by_rows, op, rows)
    return _of_rows if op == "N" else _of_columns


def matched_rows(problem: HerkProblem) -> int:
    """Return how many rows and columns, from the first on, matmul makes Hermitian to the bit.

    By `rows_on_one_core`, of contiguous operands of the result's type. 0 where there are none, of
    another BLAS than OpenBLAS, which may take other steps by the address of its operands, and of
    vectors.
    """
    n, k, rows = problem.n, problem.k, rows_on_one_core(problem)
    if not rows or min(n, k) < 2 or openblas_kernels() is None:
        return 0
    return _matched(n, k, rows, problem.op, problem.dtype, openblas_threads())


@lru_cache(maxsize=4096)
def _matched(n: int, k: int, rows: int, op: Op, dtype: str, threads: int | None) -> int:
    """See `matched_rows`; by so many threads, should an OpenBLAS share smaller products."""
    matrices = max(_FEWEST_MATRICES, min(-(-_ROWS // n), _NUMBERS // (n * k)))
    shape = (matrices, n, k) if op == "N" else (matrices, k, n)
    real = np.float32 if dtype == "complex64" else np.float64
    parts = np.random.default_rng(0).standard_normal((*shape, 2), real)
    found = np.empty((matrices, n, n), dtype)
    full_product(op, rows, n)(parts.view(dtype)[..., 0], found)
    apart = np.tril((found != np.conjugate(found).swapaxes(-1, -2)).any(0)).any(1)
    return int(apart.argmax()) if apart.any() else n


def _of_rows(a: Array, out: Array) -> None:
    np.matmul(a, np.conjugate(a).swapaxes(-1, -2), out)


def _of_columns(a: Array, out: Array) -> None:
    np.matmul(np.conjugate(a).swapaxes(-1, -2), a, out)


def _by_rows(op: Op, rows: int, a: Array, out: Array) -> None:
    conjugate, matmul = np.conjugate(a).swapaxes(-1, -2), np.matmul
    left, right = (a, conjugate) if op == "N" else (conjugate, a)
    for start in range(0, out.shape[-1], rows):
        some = slice(start, start + rows)
        matmul(left[..., some, :], right, out[..., some, :])
