"""Systems on the CPU that LAPACK solves, with steps that are chosen once for a form of operands.

Around a system of few rows NumPy's steps take longer than LAPACK. These are the ones that the norms
and the backward error need; a system that is to be scaled goes on to `argand.solve.api`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from argand.rounding import Array
from argand.runtime.quiet import quietly
from argand.runtime.threads import ONE_CORE_DOT
from argand.solve import refine
from argand.solve.cpu import CpuLibrary, WholeFactors, lapack_lu
from argand.solve.problem import SolveProblem
from argand.solve.refine import Solution
from argand.solve.scaling import safe_norms

Whole = Callable[[Array, Array], Solution]
"""Solves a x = b of operands of one form."""
Run = Callable[[Array, Array, bool], Any]
"""Solves a x = b of operands of one form; returns the `Solution` where the last argument is true,
and x elsewhere."""
LANGE_ROWS = 24
"""Most rows of a matrix whose norm LAPACK's zlange takes, which needs one call, but a square root
for each number; NumPy's three steps take less of more rows."""
# Arguments by their places take less time: the axis, a type, memory, whether the axis stays.
_add: Any = np.add.reduce
_maximum: Any = np.maximum.reduce


def prepared(problem: SolveProblem, a: Any, b: Any, whole: Whole) -> Run:
    """Return a solver of systems of this form, which passes those to be scaled to ``whole``."""
    solution = _with_details(problem, a, b, whole)
    quick = None if solution is whole or problem.working != "complex128" else _quick(problem)
    shape, dtype = b.shape, np.dtype(problem.dtype)

    def run(a: Array, b: Array, details: bool) -> Any:
        if quick is not None and not details:
            x = quick(a, b)
            if x is not None:
                return np.ascontiguousarray(x, dtype).reshape(shape)
        found = solution(a, b)
        return found if details else found.x

    return run


def _quick(problem: SolveProblem) -> Callable[[Array, Array], Array | None] | None:
    """Return the solver without details that takes less time than the one with them, if any."""
    narrow = problem.dtype == "complex64"
    if problem.columns == 1 and (problem.n <= LANGE_ROWS or not narrow):
        return _of_one_column(problem)
    few = problem.n * max(problem.n, problem.columns) <= ONE_CORE_DOT
    return _without_error(problem) if narrow and few else None


def _of_one_column(problem: SolveProblem) -> Callable[[Array, Array], Array | None]:
    """Return a solver in fp64 for one right-hand side, whose norms LAPACK takes.

    The solver returns None where a norm may require scaling, where a column has no pivot, and where
    the error is above `refine.TARGET`, so that x is to be refined.
    """
    from scipy.linalg import blas, lapack

    lange: Any = lapack.zlange
    gemv: Any = blas.zgemv
    getrf, getrs = lapack_lu(problem.working)
    columns = problem.n, 1
    least, most = safe_norms(problem.working)
    target = refine.TARGET * problem.unit_roundoff
    few, wide = problem.n <= LANGE_ROWS, np.dtype(np.complex128)

    def solve(a: Array, b: Array) -> Array | None:
        a, b = a.astype(wide, "K", copy=False), b.reshape(columns).astype(wide, copy=False)
        # The transpose of a matrix by rows is column-major, so SciPy does not copy it.
        matrix, trans, rows = (a, 0, "I") if a.flags.f_contiguous else (a.T, 1, "1")
        norm = lange(rows, matrix) if few else float(quietly(_row_norm, a))
        size = lange("M", b)
        if not (least <= norm <= most and least <= size <= most):
            return None
        lu, pivots, info = getrf(a)
        if info > 0:
            return None
        x: Array = getrs(lu, pivots, b)[0]
        residual = gemv(-1, matrix, x, 1, b, trans=trans)
        # A quotient, as with details: of infinities it is NaN, which is refused.
        error = lange("M", residual[:, None]) / (norm * lange("M", x) + size)
        return x if error <= target else None

    return solve


def _row_norm(a: Array) -> Any:
    """Return the largest sum of a row's absolute values, added in fp64."""
    return _maximum(_add(np.abs(a), 1, np.float64), None)


def _without_error(problem: SolveProblem) -> Callable[[Array, Array], Array | None]:
    """Return a solver of complex64 systems in fp64 that leaves out the backward error.

    The solver returns None where a norm may require scaling, or the error may exceed
    `refine.TARGET`. A few dot products bound the error, which itself takes many steps: the 2-norm
    of a residual's columns is at least their maximum norm, and the Frobenius norm of A and the
    2-norm of a column of x are at most sqrt(n) times their maximum norms. Residuals of fp64 are far
    below the target.
    """
    library, n = CpuLibrary(), problem.n
    columns, working, precision = (n, problem.columns), problem.working, problem.precision
    least, most = safe_norms(working)
    most, root = most / max(columns), math.sqrt(max(columns))  # a row's sum is at most root norms
    target = refine.TARGET * problem.unit_roundoff / n
    wide = np.dtype(np.complex128)

    def solve(a: Array, b: Array) -> Array | None:
        a, b = a.astype(wide), b.reshape(columns).astype(wide)
        norm, size = math.sqrt(np.vdot(a, a).real), math.sqrt(np.vdot(b, b).real)
        if not (least * root <= norm <= most and least * root <= size <= most):
            return None
        x = WholeFactors(a, working, precision).solve(b)
        residual = library.residual(a, x, b)
        smallest = np.vdot(x, x).real if columns[1] == 1 else np.vecdot(x.T, x.T).real.min()
        error = np.vdot(residual, residual).real
        return x if error <= (target * norm) ** 2 * smallest else None

    return solve


def _with_details(problem: SolveProblem, a: Any, b: Any, whole: Whole) -> Whole:
    """Return a solver of systems of this form to a whole `Solution`."""
    types = {str(x.dtype) if type(x) is np.ndarray else "" for x in (a, b)}
    empty = problem.n == 0 or problem.columns == 0
    if types != {problem.dtype} or problem.panel < problem.n or empty:
        return whole
    library, shape, dtype = CpuLibrary(), b.shape, np.dtype(problem.dtype)
    columns, precision = (problem.n, problem.columns), problem.precision
    least, most = safe_norms(problem.working)
    roundoff = problem.unit_roundoff
    narrow = problem.dtype == "complex64"

    def attempt(a: Array, b: Array) -> Solution | None:
        """Return the solution of a system that needs no scaling."""
        norm = _row_norm(a)
        sizes = np.abs(b)
        size = _maximum(_add(sizes, 1, np.float64), None)
        if not (least <= norm <= most and least <= size <= most):
            return None
        wide, right = (a.astype(np.complex128), b.astype(np.complex128)) if narrow else (a, b)
        factors = WholeFactors(wide, problem.working, precision)
        x = factors.solve(right).astype(np.complex128, copy=False)
        scale = norm * _maximum(np.abs(x), 0) + _maximum(sizes, 0)
        residual = np.abs(library.residual(wide, x, right))
        error = float(_maximum(_maximum(residual, 0) / scale, None))
        if error <= refine.TARGET * roundoff:
            return Solution(x, error, 0, precision)
        return refine.refined(
            a, b, factors, norm=float(norm), unit_roundoff=roundoff, library=library
        )

    def run(a: Array, b: Array) -> Solution:
        found: Solution | None = quietly(attempt, a, b.reshape(columns))
        if found is None:
            return whole(a, b)
        return found._replace(x=np.ascontiguousarray(found.x, dtype).reshape(shape))

    return run
