"""Full products A A^H by NumPy's matmul on one core, and their rows that need no mirror.

OpenBLAS's kernels compute element (i, j) by the steps of (j, i) in whole tiles: those for AVX-512
in 8 columns of complex64 and 4 of complex128, Haswell's in fewer than their tile of 6 rows and as
many columns. Columns beyond whole tiles are multiplied again with those before them, as a tile of
their own. `cpu_probe` sees which rows are Hermitian then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.operands import Op
from argand.herk.cpu_probe import rows_seen
from argand.herk.problem import HerkProblem
from argand.runtime.cpu.numpy_blas import has_avx512_kernels, openblas_kernels
from argand.runtime.cpu.one_core import numpy_on_one_core
from argand.runtime.cpu.threads import ONE_CORE_COMPLEX

Array = npt.NDArray[Any]
TILE: Mapping[str, int] = MappingProxyType({"complex64": 8, "complex128": 4})
"""Columns of a tile of OpenBLAS's kernels for AVX-512, by type."""
_MIN_ROWS, MIN_BEYOND = 24, 3
"""Rows, and columns beyond whole tiles, from which a tile of their own takes less time than to
mirror these."""


def weight(problem: HerkProblem) -> int:
    """Return the multiplications of a full product of one matrix, in those of complex64."""
    products = problem.n * problem.n * problem.k
    return 2 * products if problem.dtype == "complex128" else products


def full_product(op: Op, n: int, tile: int = 0) -> Callable[..., Array]:
    """Return a function that computes op(A) op(A)^H of n rows by matmul.

    It takes A and the memory of the result or None, which is allocated behind the conjugates then.
    Columns lie in whole tiles where the columns of one are given, and there are so many.
    """
    if tile and n >= _MIN_ROWS and n % tile >= MIN_BEYOND and has_avx512_kernels():
        return partial(_in_tiles, op, (slice(0, n - n % tile), slice(n - tile, n)))
    return of_rows if op == "N" else of_columns


def matched_rows(problem: HerkProblem) -> int:
    """Return how many rows and columns, from the first on, matmul makes Hermitian to the bit.

    On one core, of contiguous operands of the result's type. 0 where there are none, of another
    BLAS than OpenBLAS, which may take other steps by the address of its operands, and of vectors.
    """
    n, k = problem.n, problem.k
    one_core = weight(problem) <= ONE_CORE_COMPLEX or numpy_on_one_core.is_limited()
    if not one_core or min(n, k) < 2 or openblas_kernels() is None:
        return 0
    return _matched(n, k, problem.op, problem.dtype)


@lru_cache(maxsize=4096)
def _matched(n: int, k: int, op: Op, dtype: str) -> int:
    """Return the `matched_rows` of a form."""
    product = full_product(op, n, TILE[dtype])
    return numpy_on_one_core(rows_seen, product, n, k, op, dtype)


def of_rows(a: Array, out: Array | None = None) -> Array:
    """Return A A^H by one matmul."""
    return np.matmul(a, np.conjugate(a).swapaxes(-1, -2), out)


def of_columns(a: Array, out: Array | None = None) -> Array:
    """Return A^H A by one matmul."""
    return np.matmul(np.conjugate(a).swapaxes(-1, -2), a, out)


def _in_tiles(op: Op, columns: tuple[slice, slice], a: Array, out: Array | None = None) -> Array:
    """Compute some columns at a time."""
    conjugate, matmul = np.conjugate(a).swapaxes(-1, -2), np.matmul
    left, right = (a, conjugate) if op == "N" else (conjugate, a)
    if out is None:
        out = np.empty((*left.shape[:-1], right.shape[-1]), a.dtype)
    for these in columns:
        matmul(left, right[..., these], out[..., these])
    return out
