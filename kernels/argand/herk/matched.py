"""Rows of NumPy's products A A^H that are Hermitian to the bit, which need no mirror.

Where BLAS computes element (i, j) by the same steps as (j, i), both have the same bits but for the
sign of the imaginary part. OpenBLAS's kernels do so in whole tiles: those for AVX-512 in 8 rows of
complex64 and 4 of complex128, Haswell's in fewer rows than their tile. No library promises that, so
it is seen by products of random numbers of the same shape, which take the same steps.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from argand.gemm.operands import Op
from argand.herk.problem import HerkProblem
from argand.runtime.numpy_blas import openblas_kernels
from argand.runtime.threads import ONE_CORE_COMPLEX

_FEWEST_MATRICES, _ROWS = 8, 512
"""Products that are compared, and rows of all of them: fused multiplications and others agree in
half of all sums of two terms, and no row is taken for Hermitian by less than 2^-500."""


def weight(problem: HerkProblem) -> int:
    """Return the multiplications of a full product of one matrix, in those of complex64."""
    products = problem.n * problem.n * problem.k
    return 2 * products if problem.dtype == "complex128" else products


def matched_rows(problem: HerkProblem) -> int:
    """Return how many rows and columns, from the first on, matmul makes Hermitian to the bit.

    Of contiguous operands of the result's type. 0 where BLAS takes several cores, of another BLAS
    than OpenBLAS, which may take other steps by the address of its operands, and of vectors.
    """
    n, k = problem.n, problem.k
    if weight(problem) > ONE_CORE_COMPLEX or min(n, k) < 2 or openblas_kernels() is None:
        return 0
    return _matched(n, k, problem.op, problem.dtype)


@lru_cache(maxsize=4096)
def _matched(n: int, k: int, op: Op, dtype: str) -> int:
    matrices = max(_FEWEST_MATRICES, -(-_ROWS // n))
    shape = (matrices, n, k) if op == "N" else (matrices, k, n)
    parts = np.random.default_rng(0).standard_normal((*shape, 2))
    a = parts.view(np.complex128)[..., 0].astype(dtype)
    adjoint = np.conjugate(a).swapaxes(-1, -2)
    found = np.matmul(a, adjoint) if op == "N" else np.matmul(adjoint, a)
    apart = np.tril((found != np.conjugate(found).swapaxes(-1, -2)).any(0)).any(1)
    return int(apart.argmax()) if apart.any() else n
