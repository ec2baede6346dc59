"""Bounds by which factors of LAPACK's zgesv are small enough to take its x without a residual.

It is for a CPU: on a GPU the backward error of every x is measured (`argand.solve.gpu_calls`).

The growth is ||U|| / ||A|| in the Frobenius norm. LAPACK's zgesvx tells that of the largest
elements, which takes BLAS five times as long to find.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from argand.rounding import Array
from argand.runtime.complex_types import UNIT_ROUNDOFF
from argand.runtime.cpu.scipy_routines import routine_of
from argand.solve import refine
from argand.solve.problem import SolveProblem
from argand.solve.scaling import safe_norms

Bound = Callable[[float, Array, Array, Array], bool]
"""Returns whether x is accepted, of the `sums` of A, A, LAPACK's factors and x."""
_ROUNDINGS = 16
"""Roundings for each row that the error of complex elimination and both triangular systems stays
below, as a share of |L| |U| (Higham, Accuracy and Stability, theorem 9.4: 3; complex products and
quotients have up to three times the error of real ones; pivoting by |Re| + |Im| leaves |L| up to
sqrt(2))."""
_MEAN_ROUNDING = 0.6
"""Error of a step, in unit roundoffs u of what it leaves, in the root of the mean square: each part
has two products subtracted, and a rounding is off by sqrt(0.54 / 3) u where mantissas are those of
products."""


def most_growth(problem: SolveProblem) -> float:
    """Return the growth up to which the backward error of x is accepted (`refine.accepted`).

    For complex128 it follows from the model of `refine.accepted`: independent roundings of n steps
    add up to sqrt(n) of them (Higham and Mary, SIAM J. Sci. Comput. 41, 2019). On average
    elimination takes n / 3 steps an element, and both triangular systems together twice as many.

    For complex64, solved in complex128, it holds for roundings of any sign: x errs by its last one,
    and a row of |L| |U| adds up to sqrt(2) n ||U|| at most, where ||A|| is up to sqrt(n) of its
    maximum norm.
    """
    n, roundoff = problem.n, UNIT_ROUNDOFF["complex128"]
    accepted = refine.accepted(n, problem.unit_roundoff)
    if problem.dtype == "complex128":
        return accepted / (_MEAN_ROUNDING * math.sqrt(n) * roundoff)
    left = max(0.0, accepted - 1.01 * problem.unit_roundoff)
    return left / (_ROUNDINGS * n * roundoff * math.sqrt(2) * n * math.sqrt(n))


def bounded_by_factors(problem: SolveProblem) -> Bound:
    """Return a function that accepts x by the growth of its factors.

    It does not accept what is not finite, nor norms so far from 1 that the system may have to be
    scaled. BLAS adds |Re| + |Im| up in a third of the time of squares, and ||A|| is at least
    n / sqrt(2) times their mean, which mostly suffices.
    """
    n, upper = problem.n, routine_of("lapack", "ztrttp")
    least, most = (x * x for x in safe_norms(problem.dtype))
    share, of_mean = most_growth(problem) ** 2, 1 / (2 * n * n)

    def is_accepted(sum_of_a: float, a: Array, lu: Array, x: Array) -> bool:
        of_a = of_mean * sum_of_a * sum_of_a
        if not (least <= of_a <= most and least <= squares(x) <= most):
            return False
        found, allowed = squares(lu), share * of_a
        if allowed < found <= n * n:  # L, of numbers up to sqrt(2), may be most of it
            found = squares(upper(lu)[0])
        return found <= allowed or found <= share * squares(a.astype(lu.dtype, copy=False))

    return is_accepted


def sums(x: Array) -> float:
    """Return the sum of |Re| + |Im| of complex128 numbers, by SciPy's BLAS."""
    found: float = routine_of("blas", "dzasum")(x.ravel("K"))
    return found


def squares(x: Array) -> float:
    """Return the sum of squares of all magnitudes of complex128 numbers, by SciPy's BLAS."""
    numbers = x.ravel("K")
    found: complex = routine_of("blas", "zdotc")(numbers, numbers)
    return found.real
