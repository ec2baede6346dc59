"""The assessment of spectra and of state vectors, by 2-norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from argand import PRECISIONS, Precision
from argand.dft.butterfly import STAGES
from argand.dft.method import Method
from argand.dft.plan import Plan

from workflow.accuracy import bounds
from workflow.accuracy.assessment import Accuracy, Checks, excess_of, ratio, same_shape
from workflow.accuracy.gate_bounds import evolution_bound
from workflow.accuracy.gate_deviations import evolution_probable, fused_deviation, known_deviation
from workflow.accuracy.lines import norm_of
from workflow.accuracy.measures import Measure, measured
from workflow.accuracy.probabilistic import concentration, deviations
from workflow.accuracy.references import Array, SpectrumReference, StateReference
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
from workflow.passes import Applied, applied_matrices
from workflow.threads import each, stretches

MEASURES = (
    Measure(
        column="norm_drift", caption="norm drift", scientific=True,
        what="|2-norm of a state / that in fp64 - 1|.",
    ),
    Measure(
        column="fidelity", caption="1 − fidelity", scientific=True, together=min,
        what="|<psi|psi^>|^2 over both squared norms.", shown=lambda fidelity: 1 - fidelity,
    ),
)  # fmt: skip
_MOST_STAGES = 2 * (STAGES + 2)
"""Stages of any plan: three kernels have two of columns and those of a line, there and back."""
_LARGEST_EXPONENT = 300
"""Squares of 2^-300 times roundings, 2^-53, and amplitudes' share of 34 qubits are within fp64."""
_AMPLITUDES = 1 << 18
"""Amplitudes of a block: many, as little is done with each and threads share the interpreter."""


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

    The reference's own deviation is included; arguments are as of `assess_spectrum`.
    """
    own = reference_deviation(length)
    if plan is not None:
        deviation = plan_deviation(plan, precision, length)
        return plan_bound(plan, precision, length), deviation + own, _MOST_STAGES
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


@dataclass(frozen=True)
class StateBounds:
    """Bounds of a state's error: in the 2-norm, and of an amplitude, probable, over the largest.

    ``lost`` is what the state may lose below the range of its type, in the 2-norm: not relative.
    """

    worst: float
    probable: float
    of_peak: float
    lost: float


def state_bounds(
    precision: Precision,
    backend: str,
    amplitudes: int,
    *,
    gates: Sequence[Array] = (),
    passes: Sequence[Applied] | None = None,
    widths: Sequence[int] = (),
) -> StateBounds:
    """Return `evolution_bound` and `evolution_probable` of a circuit, the reference's own included.

    ``gates`` are the matrices (2^w, 2^w) that the reference applied, one after another. Where the
    result was computed in ``passes`` that were fused of them, these are what is known of their
    matrices. Without gates, different full matrices of ``widths`` were applied. What is lost below
    the range of the reference's type is included too.
    """
    own = [Applied(width, 2**width, 1) for width in widths]
    if gates:
        own = applied_matrices(gates, [matrix.shape[0].bit_length() - 1 for matrix in gates])
    applied = own if passes is None else passes
    at_hand = bool(gates) and passes is None
    moved = known_deviation(gates, precision) if at_hand else fused_deviation(applied, precision)
    worst = evolution_bound(
        precision, [one.width for one in applied], backend, [one.width for one in own]
    )
    exact = PRECISIONS["fp64"]
    bounds_of = [
        evolution_probable(precision, applied, backend, amplitudes=amplitudes, matrices=moved),
        evolution_probable(
            exact, own, "cpu", amplitudes=amplitudes, matrices=fused_deviation(own, exact)
        ),
    ]
    if passes is not None:  # their matrices are products of the gates', in fp64
        bounds_of.append(bounds_of[-1])
    probable, of_peak = (sum(both) for both in zip(*bounds_of, strict=True))
    lost = _lost(precision, applied, backend, amplitudes) + _lost(exact, own, "cpu", amplitudes)
    return StateBounds(worst, probable, of_peak, lost)


def _lost(precision: Precision, applied: Sequence[Applied], backend: str, amplitudes: int) -> float:
    """Return what a state may lose below the range of a precision, in the 2-norm.

    Each part of an amplitude loses as a result once, when the state is rounded, and in a pass of k
    entries a row as each of its 2 k products and 2 k additions, and as 2 k rounded operands times
    entries, whose modulus is at most 1. Exact gates keep the norm of what was lost before.
    """
    terms = underflow(precision, backend)
    parts = terms.result
    for one in applied:
        parts += 2 * 2**one.width * (2 * terms.result + terms.operand)
    return math.sqrt(2 * amplitudes) * parts


class _StateSums(NamedTuple):
    """Sums and maxima over the amplitudes of a state, or over some of them.

    Attributes:
        square: <got, got>.
        overlap: <exact, got>.
        squared_error: <got - exact, got - exact>.
        largest: largest |got - exact|.
        peak: largest |exact|.
    """

    square: float = 0.0
    overlap: complex = 0j
    squared_error: float = 0.0
    largest: float = 0.0
    peak: float = 0.0


def _compared(exact: Array, result: Array, exponent: int) -> _StateSums:
    """Return the sums of a whole state times 2^-exponent, found block by block."""

    def scaled(state: Array) -> Array:
        """Return a block in complex128, whose parts 2^-exponent itself may be out of range of."""
        state = state.astype(complex)
        return np.ldexp(state.view(float), -exponent).view(complex) if exponent else state

    def compare(some: slice) -> _StateSums:
        got, truth = scaled(result[some]), scaled(exact[some]) if exponent else exact[some]
        square, overlap = float(np.vdot(got, got).real), complex(np.vdot(truth, got))
        got -= truth
        lost = float(np.vdot(got, got).real)
        return _StateSums(
            square, overlap, lost, float(np.abs(got).max()), float(np.abs(truth).max())
        )

    whole = _StateSums()
    for part in each(compare, stretches(result.size, _AMPLITUDES)):
        whole = _StateSums(
            whole.square + part.square, whole.overlap + part.overlap,
            whole.squared_error + part.squared_error, max(whole.largest, part.largest),
            max(whole.peak, part.peak),
        )  # fmt: skip
    return whole


def assess_state(
    reference: StateReference,
    result: Array,
    precision: Precision,
    *,
    backend: str,
    gates: Sequence[Array] = (),
    passes: Sequence[Applied] | None = None,
    widths: Sequence[int] = (),
) -> Accuracy:
    """Verify a state (2^n,) after a circuit by its worst bound e; arguments as of `state_bounds`.

    The relative 2-norm error must be at most e, so the norm may drift by e from the reference's,
    whatever that is, and the angle between the states has a sine of at most e: the fidelity is at
    least 1 - e^2. The probabilistic bound is that of each amplitude too, relative to the largest
    one. What may be lost below the range of the state's type counts to each bound, over the norm.

    Raises ValueError where the shape differs.
    """
    result = np.asarray(result)
    same_shape(result, reference.values.shape)
    allowed = state_bounds(
        precision, backend, result.size, gates=gates, passes=passes, widths=widths
    )
    checks = Checks()
    exponent = _exponent(reference.norm)
    known = math.ldexp(reference.norm, -exponent)
    with np.errstate(all="ignore"):
        found = _compared(reference.values, result, exponent)
        norm = math.sqrt(found.square)
        error = ratio(math.sqrt(found.squared_error), known)
        overlap = abs(found.overlap) / np.float64(norm * known) if norm > 0 else 0.0
        fidelity = min(float(overlap**2), 1.0)  # rounding may lift it above 1
        off, peak = (float(np.ldexp(one, exponent)) for one in (found.largest, found.peak))
    drift = ratio(abs(norm - known), known)
    small = ratio(allowed.lost, reference.norm) if reference.norm else 0.0
    worst = allowed.worst + small
    checks.require(np.isfinite(norm), "the state is not finite")
    # The norms, and the fidelity, are of sums in fp64, of relative error below 2^-30.
    checks.at_most("norm_drift", drift, worst + 2.0**-30)
    checks.at_most("1 - fidelity", 1 - fidelity, worst**2 + 2.0**-30)
    most = allowed.of_peak * peak + allowed.lost
    checks.expect(
        off <= most, f"an amplitude is off by {off:.3g} where {most:.3g} is allowed, of the largest"
    )
    return Accuracy(
        error_limit=error,
        measures=measured(norm_drift=drift, fidelity=fidelity),
        reference="full",
        reference_rows=1,
        **checks.conclude(error, worst, allowed.probable + small, precision),
    )


def _exponent(norm: float) -> int:
    """Return 0 of a norm whose square, and that of its roundings, fp64 holds, else its exponent."""
    exponent = math.frexp(norm)[1] if math.isfinite(norm) else 0
    return exponent if abs(exponent) > _LARGEST_EXPONENT else 0
