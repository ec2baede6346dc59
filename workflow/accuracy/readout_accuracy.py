"""The assessment of the readout of a state: counts, expectation values, marginal probabilities.

A state that is off by e times the norm r of the true one is bounded by `state_accuracy`. It moves
an expectation value of a Pauli string by at most (2 + e) e r^2, because the string is unitary;
all probabilities together by sum ||a|^2 - |b|^2| <= (|a| + |b|) |a - b| <= (2 + e) e r^2; and the
probabilities over their sum by a total variation distance of at most the sine of the angle between
the states, which is at most e.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from argand import Precision
from argand.readout.bounds import UNIT_ROUNDOFF, expectation_bound, sum_bound

from workflow.accuracy.assessment import Accuracy, Array, Checks, same_shape
from workflow.accuracy.measures import Measure, measured
from workflow.accuracy.state_accuracy import StateBounds

MEASURES = (
    Measure(
        column="total_variation", caption="total variation", scientific=True,
        what="Half the sum of |p - q|, of the shares of counts, or of marginal probabilities, and "
        "those of the exact state. That of right counts falls with the root of their number.",
    ),
)  # fmt: skip

_PIECE = 1 << 18
"""Shots that are verified at a time, some 2 MiB an array."""


@dataclass(frozen=True)
class ReadoutReference:
    """The readout of the exact state.

    Attributes:
        readout: ``shots``, ``observables`` or ``probabilities``.
        qubits: qubits of the state; ``norm`` is its 2-norm.
        values: expectation values without coefficients, marginals, or the running sums of |a|^2.
        scale: coefficients of observables; of shots their ascending numbers in [0, 1); else empty.
    """

    readout: str
    qubits: int
    norm: float
    values: Array
    scale: Array


def assess_readout(
    reference: ReadoutReference,
    result: Array,
    precision: Precision,
    state: StateBounds,
    *,
    backend: str,
) -> Accuracy:
    """Verify a readout by the bounds of its state, which are relative to r.

    The error, ``rel_frobenius`` in records, is that of the readout's kind. It is, for expectation
    values, the largest |error| over |coefficient| r^2; of marginals their total variation distance
    over r^2; of shots the largest distance of a shot's number from the interval of the running sums
    that its basis state has: shots and numbers are both ascending, so each shot is verified by
    itself.

    Raises ValueError where the shape differs.
    """
    result, checks = np.asarray(result), Checks()
    shots = reference.readout == "shots"
    same_shape(result, (reference.scale if shots else reference.values).shape)
    checks.require(bool(np.isfinite(result).all()), "a value is not finite")
    measure = {"shots": _of_shots, "observables": _of_strings, "probabilities": _of_marginals}
    error, distance = measure[reference.readout](reference, result, checks)
    worst, probable = (
        _allowed(reference, precision, backend, bound) for bound in (state.worst, state.probable)
    )
    return Accuracy(
        error_limit=error,
        measures=measured(total_variation=distance),
        reference="full",
        reference_rows=result.size,
        **checks.conclude(error, worst, probable, precision),
    )


def _allowed(reference: ReadoutReference, precision: Precision, backend: str, e: float) -> float:
    """Return the bound of a readout of a state that is off by at most e r."""
    qubits = reference.qubits
    if reference.readout == "shots":
        # Integer weights, then the running sums of the reference and the numbers of the shots.
        return e + 2.0 ** (qubits - 61) + (2.0**qubits + 8) * UNIT_ROUNDOFF
    own = sum_bound(qubits)
    if reference.readout == "observables":
        own += expectation_bound(qubits, precision.output, backend)
        return (2 + e) * e + own * (1 + e) ** 2
    return (2 + e) * e / 2 + own * (1 + e) ** 2


def _finite(result: Array) -> Array:
    """Return a result in fp64, with 0 in place of what is not finite."""
    return np.where(np.isfinite(result), result, 0).astype(float, copy=False)


def _of_strings(
    reference: ReadoutReference, result: Array, checks: Checks
) -> tuple[float, float | None]:
    found = _finite(result) / reference.scale - reference.values
    return float(np.abs(found).max() / reference.norm**2), None


def _of_marginals(
    reference: ReadoutReference, result: Array, checks: Checks
) -> tuple[float, float | None]:
    got = _finite(result)
    checks.require(bool((got >= 0).all()), "a probability is negative")
    distance = float(np.abs(got - reference.values).sum() / 2 / reference.norm**2)
    return distance, distance


def _of_shots(
    reference: ReadoutReference, result: Array, checks: Checks
) -> tuple[float, float | None]:
    ends = reference.values / reference.values[-1]
    is_state = is_ascending = True
    outside = distance = covered = 0.0
    latest, drawn = 0, 0  # the last outcome so far, and how many shots have it
    for first in range(0, result.size, _PIECE):
        got = _finite(result[first : first + _PIECE])
        numbers = reference.scale[first : first + _PIECE]
        states = np.clip(got, 0, ends.size - 1).astype(np.int64)
        is_state &= bool((states == got).all())
        is_ascending &= bool((np.diff(states, prepend=latest) >= 0).all())
        beyond = np.maximum(_begins(ends, states) - numbers, numbers - ends[states])
        outside = max(outside, float(beyond.max()))
        outcomes, counts = np.unique(np.append(states, latest), return_counts=True)
        counts[outcomes == latest] += drawn - 1
        latest, drawn = int(outcomes[-1]), int(counts[-1])
        if first + _PIECE < result.size:  # more of the last outcome may follow
            outcomes, counts = outcomes[:-1], counts[:-1]
        exact = ends[outcomes] - _begins(ends, outcomes)
        distance += float(np.abs(counts / result.size - exact).sum())
        covered += float(exact.sum())
    checks.require(is_state, "a shot is not a basis state")
    checks.require(is_ascending, "shots are not in ascending order")
    return outside, (distance + max(0.0, 1 - covered)) / 2


def _begins(ends: Array, states: Array) -> Array:
    """Return where the intervals of basis states begin among the running sums."""
    return np.where(states > 0, ends[states - 1], 0.0)
