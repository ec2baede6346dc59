"""Systems on the CPU that LAPACK's zgesv solves, with steps chosen once for a form of operands.

Around a system of few rows NumPy's steps take longer than LAPACK. So a few of BLAS's norms bound
the backward error where nobody asks for it; where they do not suffice, or somebody asks, NumPy's
steps find it. A system that is to be scaled goes on to `argand.solve.api`.

The times behind the choices are in docs/experiments/2026-11-28-small-calls-on-a-cpu.md;
`python -m benchmarks.cpu_calls --kinds solve` times drawn systems.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import le
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.rounding import Array
from argand.runtime.complex_types import PREFIX, PREFIX_OF_REAL
from argand.runtime.quiet import quietly
from argand.runtime.scipy_blas import on_one_core
from argand.runtime.threads import ONE_CORE_COMPLEX, ONE_CORE_VECTOR
from argand.solve import refine
from argand.solve.cpu import CpuLibrary, WholeFactors
from argand.solve.problem import SolveProblem
from argand.solve.refine import Solution
from argand.solve.scaling import safe_norms

Whole = Callable[[Array, Array], Solution]
"""Solves a x = b of operands of one form."""
Run = Callable[[Array, Array, bool], Any]
"""Solves a x = b of operands of one form; returns the `Solution` where the last argument is true,
and x elsewhere."""
_NORMS_ONE_BY_ONE = 6
"""Most columns whose norms take less time by a call of BLAS each than by NumPy's dot products."""
_SQUARE_ROOTS = 100
"""Most numbers of a residual whose largest one LAPACK finds, by a square root for each."""
_ROWS_BY_NORMS = 128
"""Most rows of which 2-norms bound the error closely enough; of more, maximum norms do, which take
longer by themselves, and less time than the rest of such a system by far."""
_THREADED_NUMBERS = 40_000
"""Numbers of a matrix from which OpenBLAS's gesv takes threads."""
# Arguments by their places take less time: the axis, a type, memory, whether the axis stays.
_add: Any = np.add.reduce
_maximum: Any = np.maximum.reduce


def prepared(problem: SolveProblem, b: Array, whole: Whole) -> Run:
    """Return a solver of systems of this form, which passes those to be scaled to ``whole``."""
    if not problem.n or not problem.columns or not problem.is_zgesv:
        return lambda a, b, details: whole(a, b) if details else whole(a, b).x
    from scipy.linalg import blas, lapack

    prefix = PREFIX[problem.dtype]
    gesv: Any = lapack.zgesv
    gemm: Any = getattr(blas, f"{prefix}gemm")
    gemv: Any = getattr(blas, f"{prefix}gemv")
    is_accepted, measured = _bound(problem), _measured(problem)
    wide, dtype, shape = np.dtype(np.complex128), np.dtype(problem.dtype), b.shape
    columns, alone, flat = (problem.n, problem.columns), problem.columns == 1, b.ndim == 1

    def run(a: Array, b: Array, details: bool) -> Any:
        own = a if a.dtype is dtype else a.astype(dtype)
        right = b.reshape(columns) if flat else b
        if right.dtype is not dtype:
            right = right.astype(dtype)
        lu, pivots, found, info = gesv(own, right)
        if info:
            return _chosen(whole(a, b), details)
        if not details:
            rounded = found if dtype is wide else found.astype(dtype)
            # The transpose of a matrix by rows is column-major, so SciPy does not copy it.
            matrix, trans = (own, 0) if own.flags.f_contiguous else (own.T, 1)
            if alone:
                residual = gemv(-1, matrix, rounded, 1, right, 0, 1, 0, 1, trans)
            else:
                residual = gemm(-1, matrix, rounded, 1, right, trans)
            if is_accepted(own, rounded, residual):
                x = rounded.copy()  # by rows, as numpy.linalg.solve has it
                return x.reshape(shape) if flat else x
        solution: Solution | None = quietly(measured, own, right, found, lu, pivots)
        if solution is None:
            return _chosen(whole(a, b), details)
        x = solution.x.astype(dtype, "C").reshape(shape)
        return _chosen(solution._replace(x=x), details)

    return partial(on_one_core, run) if _is_on_one_core(problem) else run


def _is_on_one_core(problem: SolveProblem) -> bool:
    """Return whether zgesv takes one core by itself, and what finds its residual would not.

    Threads take less time for a residual than they do to start, and beside other work they wait for
    milliseconds.
    """
    matrix = problem.n * problem.n
    alone = matrix * problem.columns <= ONE_CORE_COMPLEX and matrix <= ONE_CORE_VECTOR
    return available_cores() > 1 and not alone and matrix < _THREADED_NUMBERS


def _chosen(found: Solution, details: bool) -> Any:
    return found if details else found.x


def _bound(problem: SolveProblem) -> Callable[[Array, Array, Array], bool]:
    """Return what says whether the backward error of x is surely accepted, of A in any order.

    LAPACK's norm of A takes a square root for each number. The largest sum of a row is at least the
    mean one, and a magnitude at least (|Re| + |Im|) / sqrt(2), which BLAS adds up. False also where
    a number is not finite, and where norms are so far from 1 that the system may have to be scaled.
    """
    from scipy.linalg import blas

    sums: Any = getattr(blas, f"{PREFIX_OF_REAL[problem.dtype]}asum")
    least, most = (math.sqrt(2) * problem.n * x for x in safe_norms(problem.dtype))
    accepted = refine.accepted(problem.n, problem.unit_roundoff) / (math.sqrt(2) * problem.n)
    are_small = _columns_bound(problem)

    def is_accepted(a: Array, x: Array, residual: Array) -> bool:
        total = sums(a.ravel("K"))
        return least <= total <= most and are_small(accepted * total, x, residual)

    return is_accepted


def _columns_bound(problem: SolveProblem) -> Callable[[float, Array, Array], bool]:
    """Return what says whether no column of a residual is larger than so much of that of x.

    A column's 2-norm is at least its maximum norm, and at most sqrt(n) times that. One number of
    all residuals mostly suffices for few columns: their maximum norm. Where x was rounded to
    complex64 and errs by little else, their 2-norm does for many.
    """
    from scipy.linalg import blas, lapack

    norm: Any = getattr(blas, f"{PREFIX_OF_REAL[problem.dtype]}nrm2")
    lange: Any = lapack.zlange
    narrow = problem.dtype == "complex64"
    n, columns, vecdot = problem.n, problem.columns, np.vecdot
    least, most = safe_norms(problem.dtype)
    share, starts = 1 / math.sqrt(n), range(0, n * columns, n)

    def largest(residual: Array) -> Any:
        return norm(residual.ravel("K")) if narrow else lange("M", residual.T)

    def alone(allowed: float, x: Array, residual: Array) -> bool:
        size = norm(x.ravel())
        return bool(least <= size <= most and norm(residual) <= allowed * share * size)

    def together(allowed: float, x: Array, residual: Array) -> bool:
        numbers = x.ravel("K")
        size = min([norm(numbers, n, start) for start in starts])
        if least <= size <= most and largest(residual) <= allowed * share * size:
            return True
        return bool(quietly(dots, allowed, x, residual))

    def dots(allowed: float, x: Array, residual: Array) -> bool:
        sizes = vecdot(x.T, x.T).real.tolist()
        smallest, squared = min(sizes), allowed * allowed / n
        if not (least * least <= smallest and max(sizes) <= most * most):
            return False
        if narrow and norm(residual.ravel("K")) ** 2 <= squared * smallest:
            return True
        errors = vecdot(residual.T, residual.T).real.tolist()
        return all(map(le, errors, [squared * size for size in sizes]))

    def maxima(allowed: float, x: Array, residual: Array) -> bool:
        sizes = _maximum(np.abs(x), 0)
        if not (least <= sizes.min() and sizes.max() <= most):
            return False
        return bool((_maximum(np.abs(residual.reshape(x.shape)), 0) <= allowed * sizes).all())

    if n > _ROWS_BY_NORMS:
        return partial(quietly, maxima)
    if columns == 1:
        return alone
    few = columns <= _NORMS_ONE_BY_ONE and (narrow or n * columns <= _SQUARE_ROOTS)
    return together if few else partial(quietly, dots)


def _measured(problem: SolveProblem) -> Callable[..., Solution | None]:
    """Return what finds the backward error of x by its residual, and refines what is not accepted.

    It returns None where the system is to be scaled.
    """
    library, precision, roundoff = CpuLibrary(), problem.precision, problem.unit_roundoff
    least, most = safe_norms(problem.working)
    narrow = problem.dtype == "complex64"
    accepted = refine.accepted(problem.n, roundoff)

    def measured(a: Array, b: Array, x: Array, lu: Array, pivots: Array) -> Solution | None:
        if narrow:
            a, b = a.astype(np.complex128), b.astype(np.complex128)
        norm, sizes = _maximum(_add(np.abs(a), 1), None), np.abs(b)
        if not (least <= norm <= most and least <= _maximum(_add(sizes, 1), None) <= most):
            return None
        scale = norm * _maximum(np.abs(x), 0) + _maximum(sizes, 0)
        residual = np.abs(library.residual(a, x, b))
        error = float(_maximum(_maximum(residual, 0) / scale, None))
        if error <= accepted:
            return Solution(x, error, 0, precision)
        return refine.refined(
            a, b, WholeFactors(lu, pivots, precision), norm=float(norm), unit_roundoff=roundoff,
            library=library,
        )  # fmt: skip

    return measured
