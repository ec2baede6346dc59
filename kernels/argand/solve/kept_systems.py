"""Systems on the CPU that LAPACK solves, with steps that are chosen once for a form of operands.

Around a system of few rows NumPy's steps take longer than LAPACK. These are the ones that the norms
and the backward error need; a system that is to be scaled goes on to `argand.solve.api`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from argand.rounding import Array
from argand.runtime.quiet import quietly
from argand.solve import refine
from argand.solve.cpu import CpuLibrary, WholeFactors
from argand.solve.problem import SolveProblem
from argand.solve.refine import Solution
from argand.solve.scaling import safe_norms

Run = Callable[[Array, Array], Solution]
"""Solves a x = b of operands of one form."""
# Arguments by their places take less time: the axis, a type, memory, whether the axis stays.
_add: Any = np.add.reduce
_maximum: Any = np.maximum.reduce


def prepared(problem: SolveProblem, a: Any, b: Any, whole: Run) -> Run:
    """Return what solves systems of this form, by ``whole`` those that are to be scaled."""
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
        norm = _maximum(_add(np.abs(a), 1, np.float64), None)
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
