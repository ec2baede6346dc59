"""Bounds of the backward error of systems that LAPACK's zgesv solves, by a few of BLAS's norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import le
from typing import Any

import numpy as np

from argand.rounding import Array
from argand.runtime.complex_types import PREFIX_OF_REAL, UNIT_ROUNDOFF
from argand.runtime.quiet import quiet_context, quietly
from argand.runtime.scipy_routines import routine_of
from argand.solve import refine
from argand.solve.problem import SolveProblem
from argand.solve.scaling import safe_norms

Bound = Callable[[Array, Array, Array, Array], bool]
"""Returns whether the backward error of x is surely accepted, of A, b, LAPACK's factors and x."""
_COLUMNS_ONE_BY_ONE = 6
"""Most columns whose norms take less time by a call of BLAS each than by NumPy's dot products."""
_ROWS_BY_NORMS = 128
"""Most rows of which 2-norms bound the error closely enough; of more, maximum norms do, which take
longer by themselves, and less time than the rest of such a system by far."""
_ROWS_BY_PARTS, _COLUMNS_BY_PARTS, _PRODUCTS_BY_PARTS = 100, 5, 10**6
"""Fewest rows and most columns, from 2 on, whose residual takes less time as a real product of
parts: complex products fill few lanes with so few columns. Of more multiplications of parts
OpenBLAS has no kernel for small matrices."""
_NUMBERS_BY_QUOTIENTS = 48
"""Most numbers in x, of 2 columns or more, whose quotients, residual by x, take less time than the
norms of columns. The smallest of more numbers has too large a quotient too often."""
_ROUNDINGS = 16
"""Roundings for each row that the error of complex elimination and both triangular systems stays
below, as a share of |L| |U| (Higham, Accuracy and Stability, theorem 9.4: 3; complex products and
quotients have up to three times the error of real ones; pivoting by |Re| + |Im| leaves |L| up to
sqrt(2))."""
_maximum: Any = np.maximum.reduce


def bounded_by_factors(problem: SolveProblem) -> Bound:
    """Return what bounds the error of x rounded to complex64, by the size of factors in fp64.

    Rounding x has an error of one unit roundoff of complex64, and elimination in fp64 one of some
    roundoffs of ||(|L| |U|)|| / ||A||, which stays far below that unless the factors grow. A row of
    |L| |U| adds up to no more than all magnitudes in U, and so in both factors; those in L are left
    out where they are large beside A.
    """
    sums: Any = routine_of("blas", "dzasum")
    sums_of_a, (least, most) = _sums(problem)
    n, roundoff = problem.n, UNIT_ROUNDOFF["complex128"]
    left = refine.accepted(n, problem.unit_roundoff) - 1.01 * problem.unit_roundoff
    share = left / (math.sqrt(2) * n) / (_ROUNDINGS * n * roundoff)
    are_in_range = _columns_in_range(problem)

    def is_accepted(a: Array, b: Array, lu: Array, x: Array) -> bool:
        total = sums_of_a(a.ravel("K"))
        if not least <= total <= most or not are_in_range(x):
            return False
        allowed = share * total
        return bool(sums(lu.ravel("K")) <= allowed or sums(np.triu(lu).ravel("K")) <= allowed)

    return is_accepted


def _sums(problem: SolveProblem) -> tuple[Any, tuple[float, float]]:
    """Return what adds |Re| + |Im| of a matrix up, and between which sums it need not be scaled.

    LAPACK's norm of A takes a square root for each number. The largest sum of a row is at least the
    mean one, and a magnitude at least (|Re| + |Im|) / sqrt(2).
    """
    least, most = (math.sqrt(2) * problem.n * x for x in safe_norms(problem.dtype))
    return routine_of("blas", f"{PREFIX_OF_REAL[problem.dtype]}asum"), (least, most)


def _columns_in_range(problem: SolveProblem) -> Callable[[Array], bool]:
    """Return what says whether 2-norms of all columns let them be rounded to complex64."""
    norm: Any = routine_of("blas", "dznrm2")
    n, vecdot, (least, most) = problem.n, np.vecdot, safe_norms(problem.dtype)
    starts = range(0, n * problem.columns, n)

    def one_by_one(x: Array) -> bool:
        numbers = x.ravel("K")
        sizes = [norm(numbers, n, start) for start in starts]
        return bool(least <= min(sizes) and sum(sizes) <= most)  # false also with NaN among them

    def together(x: Array) -> bool:
        squares = vecdot(x.T, x.T).real.tolist()
        return bool(least * least <= min(squares) and sum(squares) <= most * most)

    one = problem.columns <= _COLUMNS_ONE_BY_ONE
    return one_by_one if one else partial(quietly, together)


def bounded_by_residual(problem: SolveProblem) -> Bound:
    """Return what bounds the error of x in complex128, by its residual and norms of BLAS.

    False also where a number is not finite, and where norms are so far from 1 that the system may
    have to be scaled.
    """
    sums, (least, most) = _sums(problem)
    accepted = refine.accepted(problem.n, problem.unit_roundoff) / (math.sqrt(2) * problem.n)
    gemm: Any = routine_of("blas", "zgemm")
    gemv: Any = routine_of("blas", "zgemv")
    alone, are_small = problem.columns == 1, _columns_bound(problem)
    by_quotients = not alone and problem.n * problem.columns <= _NUMBERS_BY_QUOTIENTS
    norm: Any = routine_of("blas", "dznrm2")
    divide = np.divide
    by_parts = _is_by_parts(problem)

    def is_accepted(a: Array, b: Array, lu: Array, x: Array) -> bool:
        # The residual first: LAPACK leaves A in no near cache, and a product waits less than a sum.
        if by_parts and a.flags.c_contiguous and b.flags.c_contiguous:
            residual = _residual_by_parts(a, b, x)
        else:
            # The transpose of a matrix by rows is column-major, so SciPy does not copy it. NumPy
            # has another BLAS, for whose threads those of this one would wait.
            matrix, trans = (a, 0) if a.flags.f_contiguous else (a.T, 1)
            if alone:
                residual = gemv(-1, matrix, x, 1, b, 0, 1, 0, 1, trans)
            else:
                residual = gemm(-1, matrix, x, 1, b, trans)
        total = sums(a.ravel("K"))
        if not least <= total <= most:
            return False
        allowed = accepted * total
        if by_quotients and least <= sums(b.ravel("K")) <= most:
            # A number is no larger than its column's norm. A quotient by 0 is NaN or infinite, and
            # so is the norm of all, unlike the largest that BLAS finds.
            quotients = quiet_context().run(divide, residual, x)
            if norm(quotients.ravel("K")) <= allowed:
                return True
        return are_small(allowed, x, residual)

    return is_accepted


def _is_by_parts(problem: SolveProblem) -> bool:
    """Return whether `_residual_by_parts` takes less time than a complex product."""
    n, columns = problem.n, problem.columns
    few = 2 <= columns <= _COLUMNS_BY_PARTS
    return n >= _ROWS_BY_PARTS and few and 4 * columns * n * n <= _PRODUCTS_BY_PARTS


def _residual_by_parts(a: Array, b: Array, x: Array) -> Array:
    """Return b - A x: rows of A, Re and Im in turn, times x and i x of a row in turn, by parts."""
    n, columns = x.shape
    rows = np.empty((n, 2, columns), x.dtype)
    rows[:, 0] = x
    rows[:, 1] = 1j * x  # first in the order of x: a loop along so few columns takes longer
    parts = rows.view(np.float64).reshape(2 * n, 2 * columns)
    gemm: Any = routine_of("blas", "dgemm")
    found: Array = gemm(-1, parts.T, a.view(np.float64).T, 1, b.view(np.float64).T)
    return found.T.view(x.dtype)


def _columns_bound(problem: SolveProblem) -> Callable[[float, Array, Array], bool]:
    """Return what says whether no column of a residual is larger than so much of that of x.

    In the maximum norm. The number whose |Re| + |Im| is the largest one, as BLAS finds it, has a
    sum of at least that norm, and a magnitude of at most. Of few columns the one of all residuals
    mostly is no larger than so much of each number in the first row of x, or of each column's own.
    A 2-norm is at least the maximum norm, and at most sqrt(n) times as much.
    """
    norm: Any = routine_of("blas", "dznrm2")
    place: Any = routine_of("blas", "izamax")
    n, vecdot, (least, most) = problem.n, np.vecdot, safe_norms(problem.dtype)
    share, starts = 1 / math.sqrt(n), range(0, n * problem.columns, n)
    many_rows = n > _ROWS_BY_NORMS

    def largest_of(residual: Array) -> float:
        numbers = residual.ravel("K")
        number: complex = numbers.item(place(numbers))
        return abs(number.real) + abs(number.imag)

    def alone(allowed: float, x: Array, residual: Array) -> bool:
        size = norm(x.ravel())
        return bool(least <= size <= most and norm(residual) <= allowed * share * size)

    def few(allowed: float, x: Array, residual: Array) -> bool:
        numbers, largest = x.ravel("K"), largest_of(residual)
        if not norm(numbers) <= most:  # also where one is NaN, which BLAS may not find the largest
            return False
        smallest = min(map(abs, x[0].tolist()))
        if least <= smallest and largest <= allowed * smallest:
            return True
        smallest = min([abs(numbers.item(start + place(numbers, n, start))) for start in starts])
        if least <= smallest and largest <= allowed * smallest:
            return True
        return several(allowed, x, residual)

    def dots(allowed: float, x: Array, residual: Array) -> bool:
        sizes = vecdot(x.T, x.T).real.tolist()
        smallest, squared = min(sizes), allowed * allowed / n
        if not (least * least <= smallest and sum(sizes) <= most * most):
            return False
        if largest_of(residual) ** 2 <= squared * smallest:
            return True
        errors = vecdot(residual.T, residual.T).real.tolist()
        return all(map(le, errors, [squared * size for size in sizes]))

    def maxima(allowed: float, x: Array, residual: Array) -> bool:
        sizes = _maximum(np.abs(x), 0)
        if not (least <= sizes.min() and sizes.max() <= most):
            return False
        return bool((_maximum(np.abs(residual), 0) <= allowed * sizes).all())

    by_numpy = maxima if many_rows else dots

    def several(allowed: float, x: Array, residual: Array) -> bool:
        return bool(quiet_context().run(by_numpy, allowed, x, residual))

    if problem.columns == 1 and not many_rows:
        return alone
    return few if problem.columns <= _COLUMNS_ONE_BY_ONE else several
