"""Lower triangles of Hermitian products of few rows on the CPU, by dot products of rows.

BLAS's products of matrices fill few of their lanes with few rows and copy all conjugates. Dot
products read the operand in place. Which takes less time is estimated, in complex64
multiplications of 0.076 ns (docs/experiments/2026-11-28-small-calls-on-a-cpu.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from argand.herk.problem import HerkProblem
from argand.runtime.numpy_blas import has_avx512_kernels

Array = npt.NDArray[Any]
_MOST_ROWS = 20
"""Most rows whose dot products may take less time."""
_WHOLE, _SEVERAL = 11_200, 15_700
"""Time of a step of NumPy that takes the operand whole, and of one of several by parts."""
_HERK = 1_500
"""Time of a call of herk without its arithmetic; it needs no steps that ignore errors and make
diagonals real, which are subtracted."""
_EDGE = 10
"""Products of matrices compute a lower triangle in n (n / 2 + this) multiplications for each k."""


class _Times(NamedTuple):
    """Times of a dot product of no length, of a multiplication, and of a matrix of a matmul."""

    dot: float
    in_dot: float
    in_herk: float
    in_matmul: float
    matrix: float


_TIMES = {
    "complex64": _Times(110, 1.15, 1.0, 1.0, 350), "complex128": _Times(160, 2.0, 1.75, 1.75, 350),
}  # fmt: skip
_TIMES_BY_AVX512 = {
    "complex64": _Times(300, 1.9, 1.35, 1.6, 4_000),
    "complex128": _Times(350, 3.5, 1.7, 2.2, 3_600),
}
"""Times by type of the result; those by OpenBLAS's kernels for AVX-512, measured by SkylakeX."""


def dotted(problem: HerkProblem) -> Callable[[Array, Array], None] | None:
    """Return what computes lower triangles by dot products, None where others take less time."""
    if problem.op != "N" or problem.n > _MOST_ROWS or not problem.n * problem.k:
        return None
    all_times = _TIMES_BY_AVX512 if has_avx512_kernels() else _TIMES
    times, n, k = all_times[problem.dtype], problem.n, problem.k
    dots = problem.batch * n * n * (times.dot + times.in_dot * k)
    panels = min(n, max(1, round(math.sqrt(dots / (2 * _SEVERAL)))))
    ours = dots * (1 + 1 / panels) / 2 + (panels * _SEVERAL if panels > 1 else _WHOLE)
    products = n * (n / 2 + _EDGE) * k
    if problem.batch == 1:
        others = _HERK + times.in_herk * products
    else:
        others = _WHOLE + problem.batch * (times.matrix + times.in_matmul * products)
    if ours >= others:
        return None
    rows = -(-n // panels)
    return _by_columns if rows == 1 else partial(_by_panels, rows)


def _by_columns(a: Array, out: Array) -> None:
    """Compute A A^H, a column of all matrices at a time: a row stays, those from it on are read."""
    for q in range(a.shape[-2]):
        np.vecdot(a[..., q : q + 1, :], a[..., q:, :], out[..., q:, q])


def _by_panels(rows: int, a: Array, out: Array) -> None:
    """Compute A A^H, so many rows up to their last column at a time, of all matrices."""
    n = a.shape[-2]
    if rows >= n:
        np.vecdot(a if a.ndim == 2 else a[..., None, :, :], a[..., None, :], out)
        return
    for start in range(0, n, rows):
        end = start + rows
        np.vecdot(a[..., None, :end, :], a[..., start:end, None, :], out[..., start:end, :end])
