"""Systems on the CPU that LAPACK solves, with steps that are chosen once for a form of operands.

Around a system of few rows NumPy's steps take longer than LAPACK. These are the ones that the norms
and the backward error need; a system that is to be scaled or refined goes on to `argand.solve.api`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from argand.rounding import Array
from argand.runtime.quiet import quietly
from argand.solve.cpu import CpuLibrary, lapack_lu
from argand.solve.library import singular
from argand.solve.problem import SolveProblem
from argand.solve.refine import TARGET, Solution
from argand.solve.scaling import safe_norms

Run = Callable[[Array, Array], Solution]
"""Solves a x = b of operands of one form."""
# Arguments by their places take less time: the axis, a type, memory, whether the axis stays.
_add: Any = np.add.reduce
_maximum: Any = np.maximum.reduce


def prepared(problem: SolveProblem, a: Any, b: Any, whole: Run) -> Run:
    """Return what solves systems of this form, by ``whole`` those that need more than LAPACK."""
    types = {str(x.dtype) if type(x) is np.ndarray else "" for x in (a, b)}
    if types != {problem.dtype} or problem.working != problem.dtype:
        return whole
    if problem.panel < problem.n or problem.n == 0 or problem.columns == 0:
        return whole
    getrf, getrs = lapack_lu(problem.dtype)
    residual_of, shape, precision = CpuLibrary().residual, b.shape, problem.precision
    columns = (problem.n, problem.columns)
    least, most = safe_norms(problem.working)
    target = TARGET * problem.unit_roundoff
    narrow = problem.dtype == "complex64"

    def attempt(a: Array, b: Array) -> Solution | None:
        """Return the solution of a system that needs neither scaling nor refinement."""
        norm = _maximum(_add(np.abs(a), 1, np.float64), None)
        sizes = np.abs(b)
        size = _maximum(_add(sizes, 1, np.float64), None)
        if not (least <= norm <= most and least <= size <= most):
            return None
        lu, pivots, info = getrf(a)
        if info > 0:
            raise singular(info - 1)
        x, _ = getrs(lu, pivots, b)
        if narrow:
            wide = [np.asarray(z, np.complex128) for z in (a, x, b)]
            residual = residual_of(*wide)
        else:
            residual = residual_of(a, x, b)
        scale = norm * _maximum(np.abs(x), 0) + _maximum(sizes, 0)
        error = float(_maximum(_maximum(np.abs(residual), 0) / scale, None))
        if not error <= target:
            return None
        return Solution(np.ascontiguousarray(x), error, 0, precision)

    def run(a: Array, b: Array) -> Solution:
        found: Solution | None = quietly(attempt, a, b.reshape(columns))
        if found is None:
            return whole(a, b)
        return found if found.x.shape == shape else found._replace(x=found.x.reshape(shape))

    return run
