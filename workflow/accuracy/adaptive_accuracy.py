"""The assessment of adaptive weights: residuals of R w^H = q c^H, constraints, and decibels.

With a = c^H and v = w^H, weights are right where R v is a multiple of a to the backward error of
the solver, and c v = 1. How far they then are from the truth follows from R^-1: with e = R v^ - q a
of any q and 1 + d = c v^, v^ - v = (d - x^H e) v + R^-1 e, x = R^-1 a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision
from argand.hermitian.bounds import backward_bound
from argand.runtime.complex_types import UNIT_ROUNDOFF

from workflow.accuracy.assessment import (
    Accuracy,
    Checks,
    finite_lines,
    largest_ratio,
    ratio,
    same_shape,
)
from workflow.accuracy.hermitian_solver import solver_bound
from workflow.accuracy.lines import norm_along, norm_of, unit_of
from workflow.accuracy.measures import Measure, measured

MEASURES = (
    Measure(
        column="output_sinr_db", caption="output SINR", unit="dB", together=min,
        what="Of the beam with the least, for a wave as strong as an antenna's mean power, with "
        "the covariance as interference and noise.",
    ),
    Measure(
        column="sinr_loss_db", caption="SINR lost", unit="dB",
        what="By the weights' errors, against weights in fp64; of the beam that loses most.",
    ),
)  # fmt: skip
Array = npt.NDArray[Any]
_FP64 = "complex128"


@dataclass(frozen=True)
class AdaptiveReference:
    """Covariances and weights in fp64, over systems (frequency and polarization).

    Attributes:
        r: (system, n, n), loaded; ``plain`` without the loading.
        c: (system, beam, n), the weights that steer.
        w: (system, beam, n), NaN where R is not positive definite.
        x_norm: (system, beam), the norm of R^-1 c^H.
        inverse: (system,), the norm of R^-1.
        size: (system,), the Frobenius norm of the mean of |R| over times.
        largest: (system,), largest modulus of a part of an entry, relative to which some precisions
            lose the smallest ones.
        times: covariances that were averaged.
    """

    r: Array
    plain: Array
    c: Array
    w: Array
    x_norm: Array
    inverse: Array
    size: Array
    largest: Array
    times: int


def adaptive_reference(covariances: Array, weights: Array, loading: float) -> AdaptiveReference:
    """Return the weights by LAPACK's zpotrf and zpotrs through SciPy.

    covariances (time, system, n, n), whose lower triangles count; weights (system, beam, n).
    """
    from scipy import linalg

    given = covariances.astype(complex)
    plain = hermitian(given.mean(axis=0))
    n = plain.shape[-1]
    mean = np.trace(plain, axis1=-2, axis2=-1).real / max(1, n)
    r = plain + (loading * mean)[:, None, None] * np.eye(n)
    c = weights.astype(complex)
    w = np.full(c.shape, complex(np.nan, np.nan))
    x_norm, inverse = np.full(c.shape[:2], np.inf), np.full(len(r), np.inf)
    for system, matrix in enumerate(r):
        try:
            factor = linalg.cho_factor(matrix, lower=True)
        except linalg.LinAlgError:
            continue
        x = linalg.cho_solve(factor, c[system].conj().T)
        w[system] = (x / np.einsum("bn,nb->b", c[system], x)).conj().T
        x_norm[system] = norm_along(x, 0)
        least = float(np.linalg.eigvalsh(matrix)[0])
        inverse[system] = 1 / least if least > 0 else np.inf
    moduli = np.abs(given).mean(axis=0)
    parts = np.maximum(np.abs(given.real), np.abs(given.imag))
    return AdaptiveReference(
        r=r, plain=plain, c=c, w=w, x_norm=x_norm, inverse=inverse,
        size=norm_along(moduli, (-2, -1)), largest=parts.max(axis=(0, 2, 3), initial=0),
        times=len(given),
    )  # fmt: skip


def assess_adaptive(
    reference: AdaptiveReference, result: Array, precision: Precision, loading: float
) -> Accuracy:
    """Verify weights (system, beam, n); see the module.

    ``max_row_error`` is the largest relative error of a beam's weights. Weights of a covariance
    that is not positive definite in fp64 must not be finite. Where none is, something is wrong,
    unless all are zero: a shard or a piece may be a blank channel.
    """
    result = np.asarray(result)
    same_shape(result, reference.w.shape)
    checks = Checks()
    known = finite_lines(reference.w, -1)
    got = finite_lines(result, -1)
    blank = reference.largest == 0  # a channel that is, which has no weights and needs none
    checks.require(
        known.any() or blank.all(), "no covariance is positive definite: loading may help"
    )
    checks.require(
        not (got & ~known).any(), f"{np.count_nonzero(got & ~known)} beams are finite, of a "
        "covariance that is not positive definite"
    )  # fmt: skip
    lost = int(np.count_nonzero(known & ~got))
    checks.require(lost == 0, f"{lost} beams have none: more loading may help")
    both = known & got
    with np.errstate(all="ignore"):
        truth = np.where(both[..., None], reference.w, 0)
        wide = np.where(both[..., None], result, 0).astype(complex)
        errors, sizes, norm = (norm_along(x, -1) for x in (wide - truth, truth, wide))
        residual, constraint = _deviations(reference, wide)
        off = _constraint_bound(reference, precision, norm)
        excess = largest_ratio(np.where(both, constraint, 0), off)
        checks.require(excess <= 1, f"a beam's constraint is off by {excess:.3g} times its bound")
        proved = []
        for probable in (False, True):
            allowed = _residual_bound(reference, precision, loading, norm, probable=probable)
            excess = largest_ratio(np.where(both, residual, 0), allowed)
            message = f"a residual is {excess:.3g} times its bound"
            (checks.expect if probable else checks.require)(excess <= 1, message)
            enclosed = sizes * (off + reference.x_norm * allowed)
            enclosed = np.where(both, enclosed + reference.inverse[:, None] * allowed, 0)
            proved.append(ratio(norm_of(enclosed), norm_of(sizes)))
        relative = ratio(norm_of(errors), norm_of(sizes))
        rows = float(np.where(errors == 0, 0, errors / sizes).max(initial=0))
        least, loss = _decibels(reference, wide, both)
    return Accuracy(
        error_limit=relative, max_row_error=rows, reference="full",
        reference_rows=int(np.count_nonzero(known)),
        measures=measured(output_sinr_db=least, sinr_loss_db=loss),
        **checks.conclude(relative, proved[0], proved[1], precision),
    )  # fmt: skip


def hermitian(r: Array) -> Array:
    """Return R (..., n, n) of its lower triangle and the real part of its diagonal."""
    lower = np.tril(r, -1)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1).real
    return np.asarray(
        lower + lower.conj().swapaxes(-1, -2) + diagonal[..., None] * np.eye(r.shape[-1])
    )


def _deviations(reference: AdaptiveReference, w: Array) -> tuple[Array, Array]:
    """Return ||R v - q a|| with the best q, and |c v - 1|."""
    a = reference.c.conj() / norm_along(reference.c, -1)[..., None]
    image = np.einsum("sij,sbj->sbi", reference.r, w.conj())
    q = np.einsum("sbn,sbn->sb", a.conj(), image)
    residual = norm_along(image - q[..., None] * a, -1)
    gain = np.einsum("sbn,sbn->sb", reference.c, w.conj())
    return np.asarray(residual), np.asarray(np.abs(gain - 1))


def _solver(precision: Precision) -> tuple[str, float]:
    return precision.output, UNIT_ROUNDOFF[precision.output]


def _constraint_bound(reference: AdaptiveReference, precision: Precision, norm: Array) -> Array:
    """Return the bound of |c v - 1|: a sum of n products, and a division."""
    n, u = reference.c.shape[-1], _solver(precision)[1]
    each = 3 * (n + 2) * u + 8 * n * UNIT_ROUNDOFF[_FP64]
    return np.asarray(each * norm_along(reference.c, -1) * norm)


def _residual_bound(
    reference: AdaptiveReference, precision: Precision, loading: float, norm: Array, *,
    probable: bool,
) -> Array:  # fmt: skip
    """Return the bound of a residual: of the solver, of the rounding of R, and of this residual."""
    n = reference.r.shape[-1]
    dtype, u = _solver(precision)
    trace = np.trace(reference.r, axis1=-2, axis2=-1).real
    size = norm_along(reference.r, (-2, -1))
    solver = solver_bound(reference.r, dtype, probable=probable)
    # The mean over times, the loading with a sum of n, and the division by c x.
    rounded = u * ((reference.times + 1) * reference.size + (n + 4) * loading * trace / n)
    rounded += (3 * u + 4 * n * UNIT_ROUNDOFF[_FP64]) * size
    if not precision.exact_operands:
        floor = n * 2.0**-38 * reference.largest if precision.scaled else 0.0
        rounded += precision.u * reference.size + floor
    own = 2 * backward_bound(n, _FP64) * trace  # of the weights in fp64
    return np.asarray((solver + rounded + own)[:, None] * norm)


def _decibels(
    reference: AdaptiveReference, w: Array, both: Array
) -> tuple[float | None, float | None]:
    """Return the least output SINR, and the most that is lost of it.

    Both are None where no beam has power.
    """
    n = reference.r.shape[-1]
    # Scaled so that squares are in range; only the scale of c is part of the ratio.
    covariance = reference.plain / unit_of(reference.plain, (-2, -1))
    mean = np.trace(covariance, axis1=-2, axis2=-1).real / max(1, n)
    unit = unit_of(reference.c, -1)
    steering = reference.c / unit

    def ratios(weights: Array) -> Array:
        weights = weights / unit_of(weights, -1)
        power = np.einsum("sbi,sij,sbj->sb", weights, covariance, weights.conj()).real
        gain = np.square(np.abs(np.einsum("sbn,sbn->sb", steering, weights.conj())))
        return np.asarray(mean[:, None] * gain / power)

    found, best = ratios(w)[both], ratios(reference.w)[both]
    if not found.size or not ((found > 0) & (best > 0)).all():
        return None, None
    least = float((10 * np.log10(found) + 20 * np.log10(unit[..., 0][both])).min())
    return least, max(0.0, 10 * math.log10(float((best / found).max())))
