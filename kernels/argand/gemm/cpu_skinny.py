"""Batches of products of few rows or columns on the CPU, as products of a matrix with vectors.

OpenBLAS's complex GEMM for AVX-512 packs both operands whatever their sizes, and leaves the upper
halves of vector registers in use, for which what follows waits. Its products of a matrix with a
vector do neither (docs/experiments/2026-11-30-skinny-batches-on-a-cpu.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from argand.rounding import Array
from argand.runtime.cpu.numpy_blas import has_avx512_kernels, is_of_amd

if TYPE_CHECKING:
    from argand.gemm.problem import GemmProblem

_MAX_ROWS, _MAX_COLUMNS = 5, 3
"""Most rows of A, and most columns of B, whose products with a matrix take less time than GEMM."""
_MIN_K = 16
"""Least k of columns: GEMM takes less time where dot products are shorter."""
_MIN_K_OF_AMD = 48
"""Least k of rows on processors of AMD, which do not wait behind GEMM."""
_THREADS = 1 << 12
"""Numbers of a matrix from which on OpenBLAS has threads for its product with one vector."""
_EACH = np.s_[..., None, :, :]
"""Index that broadcasts a matrix along an axis of vectors."""


def multiplication(problem: GemmProblem) -> Callable[..., Array]:
    """Return a function that computes op(A) op(B) of two operands, perhaps into a third array.

    It depends on the sizes of one product alone, so that a part of a batch has the bits of the
    whole. For single matrices GEMM, by NumPy's ``dot``, takes less time.
    """
    m, n, k = problem.m, problem.n, problem.k
    if problem.batch_shape and min(m, n, k) > 1 and has_avx512_kernels():
        is_long = k >= _MIN_K_OF_AMD or not is_of_amd()
        if m <= _MAX_ROWS and is_long and n * k < _THREADS:
            return _by_rows
        if n <= _MAX_COLUMNS and k >= _MIN_K and m * k < _THREADS:
            return partial(_by_columns, problem.shape, np.dtype(problem.precision.output))
    return np.matmul


def _by_rows(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return A B, each row of A times B."""
    found: Array = np.matvec(b[_EACH].mT, a, out)
    return found


def _by_columns(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], a: Array, b: Array,
    out: Array | None = None,
) -> Array:  # fmt: skip
    """Return A B of a shape and a type, A times each column of B."""
    if out is None:
        out = np.empty(shape, dtype)
    np.matvec(a[_EACH], b.mT, out.mT)
    return out
