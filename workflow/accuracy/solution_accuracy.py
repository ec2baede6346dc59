"""The assessment of solutions of dense systems: their residuals, and what these leave of the error.

A solution is right where its backward error is as small as its precision promises: it solves a
system exactly whose matrix and right-hand sides differ by that much from those given (Rigal and
Gaches; Higham, Accuracy and Stability of Numerical Algorithms, 7.1). How far x then is from the
solution depends on the matrix: |x^ - x| = |A^-1 r| <= |A^-1| |r|, with r = b - A x^. An approximate
inverse X is at hand; with e = ||I - X A|| < 1, |A^-1| |r| <= |X| |r| + e / (1 - e) ||X|| ||r||.
Norms are maximum norms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from argand import Precision
from argand.runtime.complex_types import UNIT_ROUNDOFF
from argand.solve.refine import TARGET

from workflow.accuracy.assessment import (
    Accuracy,
    Array,
    Checks,
    finite,
    misplaced,
    ratio,
    same_shape,
)
from workflow.accuracy.lines import SMALLEST_UNIT
from workflow.accuracy.measures import Measure, measured

MEASURES = (
    Measure(
        column="backward_error", caption="backward error", scientific=True,
        what="Largest ||b - A x^|| / (||A|| ||x^|| + ||b||) of a right-hand side, in the maximum "
        "norm.",
    ),
    Measure(
        column="expected_error", caption="error against the expected", scientific=True,
        what="||X^ - X||_F / ||X||_F with X known otherwise, as by a series: what the system "
        "itself is off by, beside its arithmetic.",
    ),
)  # fmt: skip
_U = UNIT_ROUNDOFF["complex128"]
_ROWS = 512
"""Rows of the product of a matrix and its inverse, held at a time."""


@dataclass(frozen=True)
class SolutionReference:
    """Systems in fp64, their solutions by LAPACK's zgesv, and what is known of their inverses.

    Attributes:
        a: (1 or batch, n, n), b (1 or batch, n, rhs), as they were given.
        x: (batch, n, rhs), complex128; NaN where A is singular.
        x_error: (batch, n, rhs), what each element of x is off by at most.
        inverse: (1 or batch, n, n), moduli of an approximate inverse.
        inverse_error: (1 or batch,), what it is off by at most, relative to its norm; infinite
            where A is singular, or too close to that for the inverse to prove anything.
        singular: (1 or batch,), whether elimination met a column without a pivot.
        expected: (1 or batch, n, rhs) or None, solutions that are known otherwise.
    """

    a: Array
    b: Array
    x: Array
    x_error: Array
    inverse: Array
    inverse_error: Array
    singular: Array
    expected: Array | None

    def enclosure(self, index: int, residual: Array, size: Array) -> Array:
        """Return the bound on a solution's error, by its residual (n, rhs) and |A| |x| + |b|."""
        n, rhs = residual.shape
        own = min(index, len(self.inverse) - 1)
        left = np.abs(residual) + _residual_rounding(n) * size
        inverse, error = self.inverse[own], self.inverse_error[own]
        norm = float(inverse.sum(axis=-1).max())
        found = inverse @ left + error * norm * left.max(axis=0)
        # Sums of n terms and the product of moduli are rounded too.
        return np.asarray((1 + 2 * _residual_rounding(n)) * found).reshape(n, rhs)


def solution_reference(a: Array, b: Array, expected: Array | None = None) -> SolutionReference:
    """Return the reference of `argand.solve` for a (batch, n, n) and b (batch, n, rhs), by zgesv.

    A batch of 1 is shared. Takes 16 n^3 operations a matrix beside the solution: LAPACK's inverse
    and its product with A.
    """
    from scipy.linalg import lapack

    count, n = max(len(a), len(b)), a.shape[-1]
    shape = (count, n, b.shape[-1])
    x, x_error = np.full(shape, np.nan, complex), np.full(shape, np.inf)
    inverse, errors = np.zeros(a.shape), np.full(len(a), np.inf)
    singular = np.zeros(len(a), bool)
    found = SolutionReference(
        a=a, b=b, x=x, x_error=x_error, inverse=inverse, inverse_error=errors, singular=singular,
        expected=expected,
    )  # fmt: skip
    with np.errstate(all="ignore"):
        for own, matrix in enumerate(a):
            wide = matrix.astype(complex, copy=False)
            factors, pivots, info = lapack.zgetrf(wide)
            singular[own] = info > 0
            if info > 0:
                continue
            its = range(count) if len(a) == 1 else range(own, own + 1)
            sides = {index: b[min(index, len(b) - 1)].astype(complex) for index in its}
            for index, side in sides.items():
                x[index] = lapack.zgetrs(factors, pivots, side)[0]
            near = lapack.zgetri(factors, pivots, overwrite_lu=True)[0]
            inverse[own] = np.abs(near)
            errors[own] = _inverse_error(near, wide)
            for index, side in sides.items():
                residual, size = _residual(wide, x[index], side)
                x_error[index] = found.enclosure(index, residual, size)
    return found


@dataclass(frozen=True)
class _Backward:
    """A solution's residual, in the maximum norm of each right-hand side, over what it is held to.

    ``left`` is the residual, ``lost`` the most that underflow may have added to it, ``scale`` is
    ||A|| ||x|| + ||b||, and ``errors`` are ``left`` over ``scale``. ``parts`` are real and
    imaginary part over |A| |x| + |b|, ``enclosed`` bounds the error of each unknown.
    """

    left: Array
    lost: Array
    scale: Array
    errors: Array
    parts: tuple[float, float]
    enclosed: Array


def _is_solved(reference: SolutionReference, result: Array, index: int, checks: Checks) -> bool:
    """Return whether a system has a finite solution, and note why it has none."""
    if reference.singular[min(index, len(reference.a) - 1)]:
        checks.require(False, f"system {index}: the matrix is singular in fp64")
        return False
    known, got = finite(reference.x[index]), finite(result[index])
    if not known.all():
        checks.require(
            bool(got.all()),
            f"system {index}: the solution is not finite, and in fp64 neither: scale the data",
        )
    else:
        checks.placed(misplaced(known, got), f"unknowns of system {index}", result.dtype)
    return bool(got.all())


def _backward(reference: SolutionReference, x: Array, index: int, tiny: float) -> _Backward:
    """Return the residual of a solution x (n, rhs), in a type whose smallest number is ``tiny``."""
    a = reference.a[min(index, len(reference.a) - 1)].astype(complex)
    b = reference.b[min(index, len(reference.b) - 1)].astype(complex)
    residual, size = _residual(a, x, b)
    a_norm = float(np.abs(a).sum(axis=-1).max())
    x_norm, b_norm = (np.abs(y).max(axis=0) for y in (x, b))
    scale, left = a_norm * x_norm + b_norm, np.abs(residual).max(axis=0)
    shares = (
        np.where(part == 0, 0, np.abs(part) / size) for part in (residual.real, residual.imag)
    )
    real, imaginary = (float(share.max()) for share in shares)
    return _Backward(
        left, tiny * (a_norm + len(a) * x_norm + 1), scale, np.where(left == 0, 0, left / scale),
        (real, imaginary), reference.enclosure(index, residual, size),
    )  # fmt: skip


def assess_solution(reference: SolutionReference, result: Array, precision: Precision) -> Accuracy:
    """Verify solutions (batch, n, rhs) by their backward errors; see the module.

    ``backward_error`` is the largest ||b - A x^|| / (||A|| ||x^|| + ||b||) of a right-hand side, in
    the maximum norm. It must not exceed `backward_bound` by more than underflow in the result's
    type may take. ``componentwise_re`` and ``_im`` are those parts of b - A x^ over |A| |x^| + |b|.
    ``bound`` encloses rel_frobenius whatever the result is, so it decides nothing but whether a
    digit is proved. ``expected_error`` is against the solution that is known otherwise.
    """
    result = np.asarray(result)
    same_shape(result, reference.x.shape)
    batch, n, _ = result.shape
    checks = Checks()
    allowed = backward_bound(n, precision, reference.a.dtype, reference.b.dtype)
    tiny = float(np.finfo(precision.output).smallest_subnormal)
    worst, parts, enclosed = 0.0, (0.0, 0.0), np.zeros(result.shape)
    with np.errstate(all="ignore"):
        for index in range(batch):
            if not _is_solved(reference, result, index, checks):
                continue
            found = _backward(reference, result[index].astype(complex), index, tiny)
            beyond = found.left - found.lost > allowed * found.scale
            if beyond.any():
                side = int(np.argmax(np.where(beyond, found.errors, 0)))
                checks.require(
                    False,
                    f"system {index}, right-hand side {side}: backward_error "
                    f"{found.errors[side]:.3g} exceeds {allowed:.3g}",
                )
            worst = max(worst, float(found.errors.max()))
            parts = max(parts[0], found.parts[0]), max(parts[1], found.parts[1])
            enclosed[index] = found.enclosed
        error = _relative(result - reference.x, reference.x)
        proved = _relative(enclosed, reference.x) + _relative(reference.x_error, reference.x)
        expected = None
        if reference.expected is not None:
            known = np.broadcast_to(reference.expected, result.shape)
            expected = _relative(result - known, known)
    return Accuracy(
        error_limit=error,
        measures=measured(backward_error=worst, expected_error=expected),
        componentwise_re=parts[0],
        componentwise_im=parts[1],
        reference="full",
        reference_rows=batch * n,
        **checks.conclude(error, proved, proved, precision),
    )


def backward_bound(
    n: int, precision: Precision, *given: np.dtype[np.generic] | type[np.generic]
) -> float:
    """Return the bound on the backward error of a solution of n unknowns, as it is computed here.

    `argand.solve` accepts `TARGET` sqrt(n) u of the residual that it computes in fp64, in which x
    is then rounded to its type (u), and rounding operands of another type to that one counts as u
    more of A and of b. The residual errs in both places (`_residual_rounding`).

    Args:
        n: unknowns.
        precision: the precision of the products, whose type the solution has.
        given: the types of A and b.
    """
    u = UNIT_ROUNDOFF[precision.output]
    rounded = any(np.dtype(kind).itemsize > np.dtype(precision.output).itemsize for kind in given)
    return (TARGET * math.sqrt(n) + 1 + rounded) * u * (1 + 4 * u) + 2 * _residual_rounding(n)


def _residual_rounding(n: int) -> float:
    """Return the error of b - A x in fp64 over |A| |x| + |b|: gamma_(n + 3), twice if complex.

    Twice again for what moduli and sums of them are rounded by (Higham, 3.6).
    """
    return 4 * (n + 3) * _U


def _residual(a: Array, x: Array, b: Array) -> tuple[Array, Array]:
    """Return b - a x, and |a| |x| + |b|."""
    return b - a @ x, np.abs(a) @ np.abs(x) + np.abs(b)


def _inverse_error(inverse: Array, a: Array) -> float:
    """Return ||A^-1 - X|| / ||X|| at most, by I - X A and what computing that is off by."""
    n, error, moduli = len(a), 0.0, np.abs(a)
    for start in range(0, n, _ROWS):
        rows = inverse[start : start + _ROWS]
        left = np.abs(np.eye(len(rows), n, start) - rows @ a)
        left += _residual_rounding(n) * (np.abs(rows) @ moduli)
        # NaN, of what overflows, is above 1.
        error = max(error, float(np.nan_to_num(left.sum(axis=-1), nan=math.inf).max()))
    return error / (1 - error) if error < 1 else math.inf


def _relative(error: Array, size: Array) -> float:
    """Return ||error|| / ||size|| in the Frobenius norm, also where squares leave the range."""
    unit = float(np.abs(size).max(initial=0))
    if not (0 < unit < math.inf):
        return 0.0 if not np.abs(error).any() else math.inf
    unit = max(unit, SMALLEST_UNIT)
    norms = (float(np.linalg.norm((y / unit).reshape(-1))) for y in (error, size))
    found = ratio(*norms)
    return math.inf if math.isnan(found) else found
