"""The assessment of means over trajectories of a noisy circuit, against its density matrix.

Trajectories are independent, and each has values in [-1, 1] (Pauli strings) or
probabilities that sum to 1: those of a shot are 1 of its basis state and 0 of the others. So by
Hoeffding ("Probability inequalities for sums of bounded random variables", 1963) the means of m
strings over T trajectories all lie within sqrt(2 ln(2 m / d) / T) of what they estimate but with a
probability d. The total variation distance of K probabilities has a mean of at most sqrt(K / T) /
2, since the sum of their variances is at most 1, and one trajectory changes it by at most 1 / T; by
McDiarmid ("On the method of bounded differences", 1989) it exceeds its mean by sqrt(ln(1 / d) / (2
T)) with a probability of at most d.

Rounding moves a state by at most e of its norm, and so each value by (2 + e) e, as in
`readout_accuracy`, and the probability of each jump as much, after which a trajectory is another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from argand import Precision
from argand.readout.bounds import UNIT_ROUNDOFF, sum_bound

from workflow.accuracy.assessment import FAILURE, PROVABLE, Accuracy, Array, Checks, same_shape
from workflow.accuracy.measures import measured
from workflow.accuracy.state_accuracy import StateBounds

_ROUNDINGS = 16
"""Roundings of a channel in each number, at most: a sum of squares, a root, two products."""

_EDGE = 32
"""Roundings of the end of a basis state's interval, at most: running sums of up to 2^10
probabilities, one after another, or by a tree twice as deep as their number's logarithm; the number
that is drawn, and its product."""


@dataclass(frozen=True)
class NoiseReference:
    """The readout of the density matrix.

    Attributes:
        readout: ``observables``, ``probabilities``, or ``shots``, whose values are the shares of
            all basis states.
        qubits: qubits of the state.
        trajectories: the number that was averaged; ``channels`` is the number that each went
            through.
        values: tr(rho P) without coefficients, or marginals.
        scale: coefficients of observables; else ones.
        fidelity: <psi|rho|psi> of the state psi without noise.
    """

    readout: str
    qubits: int
    trajectories: int
    channels: int
    values: Array
    scale: Array
    fidelity: float


def assess_means(
    reference: NoiseReference, result: Array, precision: Precision, state: StateBounds
) -> Accuracy:
    """Verify means and standard errors (2, values + 1), the last value being the fidelity.

    The error, ``rel_frobenius`` in records, is the largest error of an expectation value over its
    coefficient, or the total variation distance of the probabilities.

    Raises ValueError where the shape differs.
    """
    result, checks = np.asarray(result), Checks()
    same_shape(result, (2, len(reference.values) + 1))
    checks.require(bool(np.isfinite(result).all()), "a mean or a standard error is not finite")
    got, errors = np.where(np.isfinite(result), result, 0).astype(float)
    count, strings = reference.trajectories, reference.readout == "observables"
    apart = got[:-1] / reference.scale - reference.values
    # Values in [-1, 1] have a variance of at most 1, and a sample's is larger by T / (T - 1).
    spread = errors / np.append(np.abs(reference.scale), 1) * math.sqrt(count - 1)
    checks.require(bool((errors >= 0).all()), "a standard error is negative")
    checks.at_most("a standard error over its largest", float(spread.max()), 1 + 2.0**-30)
    if strings:
        error, worst = float(np.abs(apart).max()), 2.0
    else:
        checks.require(bool((got >= 0).all()), "a probability is negative")
        if reference.readout == "shots":
            _require_counts(checks, count * got[:-1], count)
        error, worst = float(np.abs(apart).sum() / 2), 1.0
    statistical = _sampling_error(reference.readout, len(apart), count)
    rounding = _rounding(reference, precision, state.probable)
    off = abs(got[-1] - reference.fidelity)
    allowed = _of_means(1.0, 1, count) + rounding
    checks.expect(off <= allowed, f"the fidelity is off by {off:.3g} where {allowed:.3g} is "
        "allowed")  # fmt: skip
    distance = None if strings else error
    return Accuracy(
        error_limit=error,
        measures=measured(total_variation=distance, fidelity=float(got[-1])),
        reference="full",
        reference_rows=len(apart),
        **checks.conclude(error, worst + rounding, statistical + rounding, precision),
    )


def least_trajectories(readout: str, values: int) -> int:
    """Return the fewest trajectories whose means of ``values`` values can be proved."""
    return math.ceil((_sampling_error(readout, values, 1) / PROVABLE) ** 2)


def _sampling_error(readout: str, values: int, count: int) -> float:
    """Return how far means of values over trajectories are off, except with `FAILURE`."""
    if readout == "observables":
        return _of_means(2.0, values, count)
    return math.sqrt(values / count) / 2 + _of_means(1.0, 0.5, count)


def _require_counts(checks: Checks, counts: Array, shots: int) -> None:
    """Require whole counts, which rounding moves by less than a quarter, and their sum."""
    whole = np.rint(counts)
    checks.require(bool((np.abs(counts - whole) < 0.25).all()), "a count is not whole")
    checks.require(bool(whole.sum() == shots), "counts do not add up to the shots")


def _of_means(width: float, means: float, count: int) -> float:
    """Return how far means over an interval of ``width`` are off, except with `FAILURE`."""
    return width * math.sqrt(math.log(2 * means / FAILURE) / (2 * count))


def _rounding(reference: NoiseReference, precision: Precision, e: float) -> float:
    """Return how far rounding moves a mean: by the states, and by jumps of another probability."""
    u = 2.0**-53 if precision.output == "complex128" else 2.0**-24
    off = e + _ROUNDINGS * u * reference.channels
    edges = 2.0**reference.qubits * _EDGE * UNIT_ROUNDOFF if reference.readout == "shots" else 0.0
    return (2 + off) * off * (1 + reference.channels) + 2 * sum_bound(reference.qubits) + edges
