"""The assessment of state vectors, by 2-norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from argand import PRECISIONS, Precision

from workflow.accuracy.assessment import Accuracy, Array, Checks, ratio, same_shape
from workflow.accuracy.gate_bounds import evolution_bound
from workflow.accuracy.gate_deviations import evolution_probable, fused_deviation, known_deviation
from workflow.accuracy.lines import norm_of
from workflow.accuracy.measures import Measure, measured
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
_LARGEST_EXPONENT = 300
"""Squares of 2^-300 times roundings, 2^-53, and amplitudes' share of 34 qubits are within fp64."""
_AMPLITUDES = 1 << 18
"""Amplitudes of a block: many, as little is done with each and threads share the interpreter."""


@dataclass(frozen=True)
class StateReference:
    """A final state in fp64, and its 2-norm."""

    values: Array
    norm: float


def state_reference(final_state_fp64: Array) -> StateReference:
    """Return the reference for a state vector (2^n,) that was evolved in complex128.

    Raises ValueError for another type: a rounded state is not the truth.
    """
    values = np.asarray(final_state_fp64)
    if values.dtype != np.complex128:
        raise ValueError(f"final_state_fp64.dtype must be complex128, got {values.dtype}")
    with np.errstate(over="ignore"):
        norm = float(np.linalg.norm(values))
    if norm == 0 or _exponent(norm) or not math.isfinite(norm):
        norm = norm_of(values)
    return StateReference(values, norm)


def _exponent(norm: float) -> int:
    """Return 0 of a norm whose square, and that of its roundings, fp64 holds, else its exponent."""
    exponent = math.frexp(norm)[1] if math.isfinite(norm) else 0
    return exponent if abs(exponent) > _LARGEST_EXPONENT else 0


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
    """Verify a state (2^n,) after a circuit by its worst bound e; arguments as in `state_bounds`.

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
