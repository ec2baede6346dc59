"""Systems on the CPU that LAPACK's zgesv solves, with steps chosen once for a form of operands.

Around a system of few rows NumPy's steps take longer than LAPACK. So where nobody asks for the
backward error, a few of BLAS's norms bound it: of complex64 those of the factors, which fp64 leaves
room for, and of complex128 those of the residual. Where they do not suffice, or somebody asks,
NumPy's steps find it. A system that is to be scaled goes on to `argand.solve.api`.

The times behind the choices are in docs/experiments/2026-11-28-small-calls-on-a-cpu.md;
`python -m benchmarks.cpu_calls --kinds solve` times drawn systems.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.rounding import Array
from argand.runtime.quiet import quietly
from argand.runtime.scipy_blas import on_one_core
from argand.runtime.scipy_routines import lapack
from argand.runtime.threads import ONE_CORE_COMPLEX, ONE_CORE_COMPLEX_VECTOR, ONE_CORE_DOT
from argand.solve import refine
from argand.solve.cpu import CpuLibrary, WholeFactors
from argand.solve.error_bounds import bounded_by_factors, bounded_by_residual
from argand.solve.problem import SolveProblem
from argand.solve.refine import Solution
from argand.solve.scaling import safe_norms

Whole = Callable[[Array, Array], Solution]
"""Solves a x = b of operands of one form."""
Run = Callable[[Array, Array], Any]
"""Solves a x = b of operands of one form; returns the `Solution` where details were asked for, and
x elsewhere."""
_THREADED_NUMBERS = 40_000
"""Numbers of a matrix from which OpenBLAS's gesv takes threads."""
_LITTLE_PRODUCTS = 1 << 20
"""Most products of a residual, some 0.15 ms, that one core computes after threads solved."""
# Arguments by their places take less time: the axis, a type, memory, whether the axis stays.
_add: Any = np.add.reduce
_maximum: Any = np.maximum.reduce


def prepared(problem: SolveProblem, b: Array, whole: Whole, *, details: bool) -> Run:
    """Return a solver of systems of this form, which passes those to be scaled to ``whole``."""
    if not problem.n or not problem.columns or not problem.is_zgesv:
        return whole if details else lambda a, b: whole(a, b).x
    gesv = lapack("gesv", "complex128")
    narrow, measured = problem.dtype == "complex64", _measured(problem)
    is_accepted = bounded_by_factors(problem) if narrow else bounded_by_residual(problem)
    if _is_bounded_on_one_core(problem):
        is_accepted = partial(on_one_core, is_accepted)
    dtype, shape, columns = np.dtype(problem.dtype), b.shape, (problem.n, problem.columns)
    flat = b.ndim == 1

    def run(a: Array, b: Array) -> Any:
        own = a if a.dtype is dtype else a.astype(dtype)
        right = b.reshape(columns) if flat else b
        if right.dtype is not dtype:
            right = right.astype(dtype)
        lu, pivots, found, info = gesv(own, right)
        if info:
            return _chosen(whole(a, b), details)
        if not details and is_accepted(own, right, lu, found):
            # By rows, as numpy.linalg.solve has it.
            x = found.astype(dtype, "C") if narrow else found.copy()
            return x.reshape(shape) if flat else x
        solution: Solution | None = quietly(measured, own, right, found, lu, pivots)
        if solution is None:
            return _chosen(whole(a, b), details)
        x = solution.x.astype(dtype, "C").reshape(shape)
        return _chosen(solution._replace(x=x), details)

    return partial(on_one_core, run) if _is_on_one_core(problem) else run


def _is_on_one_core(problem: SolveProblem) -> bool:
    """Return whether zgesv takes one core by itself, and what bounds its error would not.

    Threads take less time for a residual or a norm than they do to start, and beside other work
    they wait for milliseconds.
    """
    matrix, columns = problem.n * problem.n, problem.columns
    if problem.dtype == "complex64":
        alone = matrix <= ONE_CORE_DOT  # sums of magnitudes
    elif columns == 1:
        alone = matrix <= ONE_CORE_COMPLEX_VECTOR
    else:
        alone = matrix * columns <= ONE_CORE_COMPLEX and matrix <= ONE_CORE_DOT
    return available_cores() > 1 and not alone and matrix < _THREADED_NUMBERS


def _is_bounded_on_one_core(problem: SolveProblem) -> bool:
    """Return whether one core bounds the error of what threads solve: the rest is little beside it.

    Each further call by threads may wait for those of another program or of NumPy's BLAS.
    """
    matrix = problem.n * problem.n
    little = problem.dtype == "complex64" or matrix * problem.columns <= _LITTLE_PRODUCTS
    return available_cores() > 1 and matrix >= _THREADED_NUMBERS and little


def _chosen(found: Solution, details: bool) -> Any:
    return found if details else found.x


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
