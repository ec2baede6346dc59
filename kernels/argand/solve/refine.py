"""Iterative refinement in fp64, until the backward error is that of LAPACK's zgesv or smaller."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from argand.rounding import Array
from argand.solve.library import Factors, Library
from argand.solve.scaling import blocks_of, times_power

MAX_STEPS = 5
"""Steps of refinement, as in LAPACK's zgerfs."""
TARGET = 4.0
"""Backward error in unit roundoffs of the result's type at which refinement ends."""

_SMALLEST = 5e-324
"""The smallest number of fp64."""


class Solution(NamedTuple):
    """A solution and how good it is.

    Attributes:
        x: the solution of A x = b, with b's shape.
        backward_error: the largest of ||b - A x|| / (||A|| ||x|| + ||b||) over the right-hand
            sides, in the maximum norm, for the x in fp64; rounding that to complex64 adds 2^-24.
        steps: steps of refinement.
        precision: the precision of the products of the factorization that x was found by.
    """

    x: Any
    backward_error: float
    steps: int
    precision: str


def accepted(n: int, unit_roundoff: float) -> float:
    """Return the largest backward error of n rows that is accepted.

    A residual's n products add up to an error of sqrt(n) u where rounding errors are independent;
    LAPACK's zcgesv accepts sqrt(n) u of its norms.
    """
    return TARGET * math.sqrt(n) * unit_roundoff


def refined(
    a: Any,
    b: Any,
    factors: Factors,
    *,
    norm: float,
    unit_roundoff: float,
    library: Library,
    converged: bool = False,
    x: Any = None,
) -> Solution:
    """Solve by the factors of A and correct x by the solution of A d = b - A x, in fp64.

    Ends at a backward error of `TARGET` unit roundoffs u, after `MAX_STEPS` steps, or when a step
    does not halve the error, which then is that of the residual itself, so that what is `accepted`
    is larger. The solution of gesv (`Factors.as_gesv`) is refined only where it is not accepted.

    Args:
        a, b: (n, n) and (n, r), n and r at least 1.
        factors: factors of a.
        norm: the maximum norm of a.
        unit_roundoff: u, of the result's type.
        library: BLAS of the arrays' backend.
        converged: accept no more than `TARGET` u.
        x: what the factors find for b, in complex128, where that is known.

    Returns:
        x in complex128.

    Raises numpy.linalg.LinAlgError where the backward error stays larger.
    """
    target = TARGET * unit_roundoff
    most = target if converged else accepted(len(a), unit_roundoff)
    b_norms = library.arrays.abs(b).max(axis=0)
    # Numbers that overflow, and NaN, fail the comparisons below.
    with np.errstate(over="ignore", invalid="ignore"):
        x = factors.solve(b).astype(np.complex128) if x is None else x
        residual, error = _residual(a, x, b, norm, b_norms, library)
        steps, halved = 0, True
        if factors.as_gesv and error <= most:
            return Solution(x, error, 0, factors.precision)
        while not error <= target and halved and steps < MAX_STEPS:
            other = x + factors.solve(residual)
            found, error_of_other = _residual(a, other, b, norm, b_norms, library)
            steps += 1
            halved = error_of_other <= error / 2
            if error_of_other < error:
                x, residual, error = other, found, error_of_other
    if not error <= most:
        raise np.linalg.LinAlgError(
            f"the backward error is {error:.2g} after {steps} steps of refinement, above "
            f"{most:.2g}: the matrix is too close to singular, or its factors grow too large, "
            "for products of this precision"
        )
    return Solution(x, error, steps, factors.precision)


def _residual(
    a: Any, x: Any, b: Any, norm: float, b_norms: Any, library: Library
) -> tuple[Any, float]:
    """Return b - a x in fp64, and the largest backward error of a column."""
    arrays = library.arrays
    b = b.astype(np.complex128, copy=False)
    if a.dtype == np.complex128:
        residual = library.residual(a, x, b)
    else:
        parts, start = [], 0
        for block in blocks_of(a):
            rows = slice(start, start + len(block))
            parts.append(library.residual(block.astype(np.complex128), x, b[rows]))
            start = rows.stop
        residual = arrays.concatenate(parts)
    scale = norm * arrays.abs(x).max(axis=0) + b_norms
    # A column of b that is 0 has the solution 0.
    errors = arrays.abs(residual).max(axis=0) / arrays.where(scale > 0, scale, 1)
    return residual, float(errors.max())


def error_of_any_norms(a: Array, x: Array, b: Array, library: Library) -> float:
    """Return the largest backward error of a column of NumPy arrays, of norms far from 1 too.

    Powers of two bring A near 1, and of each column the larger of A x and b: what underflows then
    is below the unit roundoff of the norms. NaN where a number is not finite.
    """
    sizes = [
        np.maximum(np.abs(of.real), np.abs(of.imag)).max(axis=axis)
        for of, axis in ((a, None), (x, 0), (b, 0))
    ]
    if not all(np.isfinite(size).all() for size in sizes):
        return math.nan
    # Zeros have an exponent too, that of the smallest number.
    of_a, of_x, of_b = (np.frexp(np.maximum(size, _SMALLEST))[1] for size in sizes)
    sides: Any = np.maximum(of_a + of_x, of_b)
    a, x, b = times_power(a, -of_a), times_power(x, of_a - sides), times_power(b, -sides)
    return _residual(a, x, b, np.abs(a).sum(axis=1).max(), np.abs(b).max(axis=0), library)[1]
