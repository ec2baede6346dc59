"""Systems on the CPU that LAPACK's zgesv solves, with steps chosen once for a form of operands.

A residual takes up to a fifth of LAPACK's time. So where nobody asks for the backward error, x is
taken as it is unless the factors have grown (`argand.solve.error_bounds`). Where they have, or
somebody asks, NumPy's steps find it. A system that is to be scaled goes on to `argand.solve.api`.

The times behind the choices are in docs/experiments/2026-11-28-small-calls-on-a-cpu.md;
`python -m benchmarks.cpu_calls --kinds solve` times drawn systems.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.rounding import Array
from argand.runtime.cpu.one_core import scipy_on_one_core
from argand.runtime.cpu.quiet import quietly
from argand.runtime.cpu.threads import ONE_CORE_COMPLEX, ONE_CORE_COMPLEX_VECTOR, ONE_CORE_DOT
from argand.solve import refine
from argand.solve.cpu import CpuLibrary, WholeFactors
from argand.solve.cpu_zgesv import MAX_KEPT, kept_systems
from argand.solve.error_bounds import bounded_by_factors, sums
from argand.solve.problem import SolveProblem
from argand.solve.refine import Solution
from argand.solve.scaling import far_rows, in_type, safe_norms

Whole = Callable[[Array, Array], Solution]
"""Solves a x = b of operands of one form."""
Run = Callable[[Array, Array], Any]
"""Solves a x = b of operands of one form; returns the `Solution` where details were asked for, and
x elsewhere."""
_THREADED_NUMBERS = 40_000
"""Numbers of a matrix from which OpenBLAS's gesv takes threads."""
# Arguments by their places take less time: the axis, a type, memory, whether the axis stays.
_add: Any = np.add.reduce
_maximum: Any = np.maximum.reduce


def prepared(problem: SolveProblem, b: Array, whole: Whole, *, details: bool) -> Run:
    """Return a solver of systems of this form, which passes those to be scaled to ``whole``."""
    if not problem.n or not problem.columns or not problem.is_zgesv:
        return whole if details else lambda a, b: whole(a, b).x
    kept, measured = kept_systems(problem.n, problem.columns), _measured(problem)
    size, is_accepted = sums, bounded_by_factors(problem)
    if available_cores() > 1 and problem.n * problem.n >= _THREADED_NUMBERS:
        # Threads that solve may wait for those of another program at each further call.
        size, is_accepted = (
            partial(scipy_on_one_core, size),
            partial(scipy_on_one_core, is_accepted),
        )
    dtype, shape = np.dtype(problem.dtype), b.shape
    flat, columns, is_kept = b.ndim == 1, (problem.n, problem.columns), problem.n**2 <= MAX_KEPT

    def run(a: Array, b: Array) -> Any:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new() if is_kept else kept.make()
        lu, x, solve, pivots = memory
        sides = b.reshape(columns) if flat else b
        lu[...] = a
        x[...] = sides
        of_a, solution = 0.0 if details else size(lu), None
        if not solve():
            if of_a and is_accepted(of_a, a, lu, x):
                # Row-major, as numpy.linalg.solve has it.
                found = x.astype(dtype, "C")
                if is_kept:
                    kept.append(memory)
                return found.reshape(shape) if flat else found
            solution = quietly(measured, a, sides, x, lu, pivots())
            if solution is not None:
                found = in_type(solution.x, problem.dtype, np)
                solution = solution._replace(x=found.reshape(shape))
        if is_kept:
            kept.append(memory)
        return _chosen(whole(a, b) if solution is None else solution, details)

    return partial(scipy_on_one_core, run) if _is_on_one_core(problem, details) else run


def _is_on_one_core(problem: SolveProblem, details: bool) -> bool:
    """Return whether zgesv takes one core by itself, and norms or a residual would not.

    Threads take less time for these than they do to start, and beside other work they wait for
    milliseconds.
    """
    matrix, columns = problem.n * problem.n, problem.columns
    alone = matrix <= ONE_CORE_DOT
    if details and columns == 1:
        alone = matrix <= ONE_CORE_COMPLEX_VECTOR
    elif details:
        alone = alone and matrix * columns <= ONE_CORE_COMPLEX
    return available_cores() > 1 and not alone and matrix < _THREADED_NUMBERS


def _chosen(found: Solution, details: bool) -> Any:
    return found if details else found.x


def _measured(problem: SolveProblem) -> Callable[..., Solution | None]:
    """Return a function that finds the backward error of x by its residual, and may refine x.

    It returns None where the system is to be scaled, which is tried where norms, or that of x, are
    far from 1 and the error of x is not accepted.
    """
    library, precision, roundoff = CpuLibrary(), problem.precision, problem.unit_roundoff
    least, most = safe_norms(problem.working)
    accepted = refine.accepted(problem.n, roundoff)

    def measured(a: Array, b: Array, x: Array, lu: Array, pivots: Array) -> Solution | None:
        a, b = a.astype(np.complex128, copy=False), b.astype(np.complex128, copy=False)
        norm, sizes = _maximum(_add(np.abs(a), 1), None), np.abs(b)
        scale = norm * _maximum(np.abs(x), 0) + _maximum(sizes, 0)
        near = least <= norm <= most and least <= _maximum(_add(sizes, 1), None) <= most
        if not (near and _maximum(scale, None) <= most * most):
            # Scaled first, small columns of A may underflow, and large numbers of x overflow.
            error = math.nan
            # Small rows count for nothing in a norm, and numbers of x by infinite factors may be 0.
            if far_rows(a, problem.working, np) is None and np.isfinite(lu).all():
                error = refine.error_of_any_norms(a, x, b, library)
            return Solution(x, error, 0, precision) if error <= accepted else None
        residual = np.abs(library.residual(a, x, b))
        error = float(_maximum(_maximum(residual, 0) / scale, None))
        if error <= accepted:
            return Solution(x, error, 0, precision)
        return refine.refined(
            a, b, WholeFactors(lu, pivots, precision), norm=float(norm), unit_roundoff=roundoff,
            library=library,
        )  # fmt: skip

    return measured
