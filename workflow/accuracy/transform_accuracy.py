"""The assessment of spectra, by 2-norms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from argand import Precision
from argand.dft.butterfly import STAGES
from argand.dft.method import Method
from argand.dft.plan import Plan

from workflow.accuracy import bounds
from workflow.accuracy.assessment import Accuracy, Checks, excess_of, ratio, same_shape
from workflow.accuracy.lines import norm_of
from workflow.accuracy.probabilistic import concentration, deviations
from workflow.accuracy.references import Array, SpectrumReference
from workflow.accuracy.row_errors import RowErrors, row_errors
from workflow.accuracy.transform_bounds import dft_bound, plan_bound
from workflow.accuracy.transform_deviations import (
    factors_deviation,
    library_deviation,
    method_deviation,
    plan_deviation,
    reference_deviation,
)
from workflow.accuracy.underflow import underflow

_MAX_STAGES = 2 * (STAGES + 2)
"""Stages of any plan: three kernels have two of columns and those of a line, there and back."""


def assess_spectrum(
    reference: SpectrumReference,
    result: Array,
    precision: Precision,
    *,
    backend: str,
    factors: Sequence[int] = (),
    method: Method | None = None,
    plan: Plan | None = None,
    library: bool = False,
) -> Accuracy:
    """Verify each spectrum of (..., N) by its bounds in the 2-norm, and each bin by its row's.

    ``factors`` are the lengths of the dense stages, with product N (`bounds.transform_bound`), or
    those that are assumed of a ``library``. Where there is a ``method`` of
    `argand.dft`, it is `transform_bounds.dft_bound` of it, and where there is the ``plan`` that ran
    on a GPU, `transform_bounds.plan_bound` of it. `transform_deviations` has the probabilistic
    counterparts. A row of zeros must be exactly zero, a row whose reference is not finite must not
    be finite. Below the accumulator's range each of the 2 N operations of a value may lose
    `underflow.Underflow`; a stage's table and sums amplify that by at most N.

    A bin's error deviates by at most the deviation of the transform times the row's largest bin:
    errors are spread by the stages that follow at least as far as the signal itself.

    Raises ValueError where the shape differs or the factors do not make up N.
    """
    result = np.asarray(result)
    same_shape(result, reference.values.shape)
    length = int(result.shape[-1])
    worst, deviation, stages = _transform_bounds(
        precision, length, backend, factors=factors, method=method, plan=plan, library=library
    )
    terms = underflow(precision, backend)
    lost = max(stages, 1) * 4.0 * length**2 * (terms.operand + terms.result)
    checks, rows = Checks(), row_errors(reference, result)
    sizes, errors, count = rows.sizes, rows.errors, len(rows.sizes)
    probable = deviation * concentration(2 * length, count)
    of_peak = deviation * deviations(result.size)
    with np.errstate(all="ignore"):
        checks.placed(rows.misplaced, "rows", result.dtype)
        relative = np.where(errors == 0, 0, errors / sizes)
        _check_rows(checks, rows, (worst, probable), of_peak, lost)
        norm = norm_of(sizes)
        small = ratio(lost * math.sqrt(count), norm) if norm else 0.0
    error = ratio(norm_of(errors), norm)
    return Accuracy(
        error_limit=error,
        componentwise_re=float(rows.parts[0].max(initial=0)),
        componentwise_im=float(rows.parts[1].max(initial=0)),
        max_row_error=float(relative.max(initial=0)),
        reference="full",
        reference_rows=count,
        **checks.conclude(
            error, worst + small, deviation * concentration(2 * length) + small, precision
        ),
    )


def _check_rows(
    checks: Checks, rows: RowErrors, bounds: tuple[float, float], of_peak: float, lost: float
) -> None:
    """Hold each row to its bounds, the worst and the probable one, and its bins to ``of_peak``.

    ``lost`` is what a row may lose below the range of the accumulator.
    """
    sizes, peaks = rows.sizes, rows.peaks
    for bound, check in zip(bounds, (checks.require, checks.expect), strict=True):
        row, excess = _worst_row(rows.errors, np.where(sizes == 0, 0, bound * sizes + lost))
        check(excess <= 1, f"max_row_error: row {row} is {excess:.3g} times what is allowed "
            f"(bound {bound:.3g})")  # fmt: skip
    row, excess = _worst_row(rows.largest, np.where(peaks == 0, 0, of_peak * peaks + lost))
    checks.expect(excess <= 1, f"a bin of row {row} is off by {excess:.3g} times what is "
        f"allowed ({of_peak:.3g} of the row's largest bin)")  # fmt: skip


def _transform_bounds(
    precision: Precision,
    length: int,
    backend: str,
    *,
    factors: Sequence[int],
    method: Method | None,
    plan: Plan | None,
    library: bool,
) -> tuple[float, float, int]:
    """Return the worst bound of a transform, its deviation and its stages, by what is known of it.

    The reference's own deviation is included; arguments are as in `assess_spectrum`.
    """
    own = reference_deviation(length)
    if plan is not None:
        deviation = plan_deviation(plan, precision, length)
        return plan_bound(plan, precision, length), deviation + own, _MAX_STAGES
    if method is not None:
        deviation = method_deviation(precision, method, backend)
        return dft_bound(precision, method, backend), deviation + own, len(method.stages)
    if int(np.prod(factors, dtype=np.int64)) != length:
        raise ValueError(f"factors must have the product {length}, got {list(factors)}")
    worst = bounds.transform_bound(precision, factors, backend)
    if library:
        return worst, library_deviation(precision, length) + own, len(factors)
    return worst, factors_deviation(precision, factors, backend) + own, len(factors)


def _worst_row(errors: Array, allowed: Array) -> tuple[int, float]:
    """Return the row with the largest error over what is allowed, and how large that is."""
    excess = excess_of(errors, allowed)
    row = int(excess.argmax()) if excess.size else 0
    return row, float(excess[row]) if excess.size else 0.0
