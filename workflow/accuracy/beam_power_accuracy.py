"""The assessment of detected beams, against zgemm and sums of squares in fp64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision
from argand.beam_power.problem import BeamPowerProblem

from workflow.accuracy.assessment import (
    Accuracy,
    Checks,
    excess_of,
    finite,
    misplaced,
    ratio,
    same_shape,
)
from workflow.accuracy.beam_power_bounds import Powers, allowed, detected
from workflow.accuracy.coherence import sampled
from workflow.accuracy.lines import norm_of
from workflow.accuracy.measures import measured

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class BeamPowerReference:
    """Detected beams in fp64 and their operands; ``exact`` holds the powers of these as given."""

    problem: BeamPowerProblem
    weights: Array
    samples: Array
    exact: Powers
    seed: int

    def coherence(self, precision: Precision) -> float:
        """Return the factor of roundings over independent ones on these data (`coherence`)."""
        if not (self.weights.size and self.samples.size):
            return 1.0
        w, x = (one.reshape(-1, *one.shape[-2:])[0] for one in (self.weights, self.samples))
        return sampled(w, x, precision, np.random.default_rng([self.seed, 0xC0]))


def beam_power_reference(
    problem: BeamPowerProblem, weights: Array, samples: Array, *, seed: int = 0
) -> BeamPowerReference:
    """Return the powers of a problem's operands in fp64; its precision does not matter."""
    exact = detected(problem, weights, samples)
    return BeamPowerReference(problem, weights, samples, exact, seed)


def assess_beam_power(
    reference: BeamPowerReference,
    result: Array,
    precision: Precision,
    *,
    backend: str,
    grid: tuple[int, int] | None = None,
) -> Accuracy:
    """Verify every power by `beam_power_bounds.allowed`, in the worst case and probably.

    ``componentwise_re`` is the largest error over the sum of ||a||^2 ||b||^2, the power of a wave
    that a beam adds coherently. ``dynamic_range_db`` is the largest power over the root mean square
    of the error: what is fainter than that is the arithmetic's. ``peak_shift`` is how far the
    strongest beam of the mean over all else has moved, in beams, or in cells of ``grid`` (its rows
    and columns). A power that is not finite in fp64 must not be finite, and only such a one.
    """
    result, problem = np.asarray(result), reference.problem
    same_shape(result, problem.shape)
    exact, checks = reference.exact, Checks()
    held = detected(problem, reference.weights, reference.samples, precision)
    bound = allowed(problem, exact, held, precision, backend)
    coherence = reference.coherence(precision)
    likely = allowed(problem, exact, held, precision, backend, coherence)
    # Nothing underflows where all samples are zero, such as those of a channel that is blank. Where
    # their squares underflow in fp64 powers need not.
    blank = (exact.moduli == 0) & (exact.power == 0)
    bound, likely = (np.where(blank, 0, x) for x in (bound, likely))
    got = result.reshape(exact.power.shape).astype(float)
    known = finite(exact.power)
    checks.placed(misplaced(known, finite(got)), "powers", result.dtype)
    known &= finite(got)
    with np.errstate(all="ignore"):
        error = np.where(known, np.abs(got - exact.power), 0.0)
        _check(checks, error, bound)
        beyond = int(np.count_nonzero(known & (error > likely)))
        checks.expect(beyond == 0, f"{beyond} powers are off by more than is probable")
        share = np.where((error == 0) | (exact.moduli == 0), 0.0, error / exact.moduli)
        truth = np.where(known, exact.power, 0.0)
        size = norm_of(truth)
        relative = ratio(norm_of(error), size)
        proved, probable = (ratio(norm_of(np.where(known, x, 0)), size) for x in (bound, likely))
    return Accuracy(
        error_limit=relative,
        componentwise_re=float(share.max(initial=0)),
        measures=measured(
            dynamic_range_db=_dynamic_range(truth, error),
            peak_shift=_peak_shift(exact.power, got, grid),
        ),
        reference="full",
        reference_rows=truth.size,
        **checks.conclude(relative, proved, probable, precision),
    )


def _check(checks: Checks, error: Array, bound: Array) -> None:
    """Require every error (batch, parameter, beam, bin) to be within its bound."""
    excess = excess_of(error, bound)
    worst = int(excess.argmax()) if excess.size else 0
    where = tuple(map(int, np.unravel_index(worst, excess.shape))) if excess.size else ()
    largest = float(excess.max(initial=0))
    checks.require(
        largest <= 1,
        f"componentwise: a power is off by {largest:.3g} times what is allowed, at (batch, "
        f"parameter, beam, bin) {where}",
    )


def _dynamic_range(truth: Array, error: Array) -> float | None:
    """Return 10 log10 of the largest power over the rms error; None where nothing is off."""
    peak, rms = float(truth.max(initial=0)), norm_of(error) / math.sqrt(max(1, error.size))
    return 10 * math.log10(peak / rms) if peak > 0 and 0 < rms < math.inf else None


def _peak_shift(truth: Array, got: Array, grid: tuple[int, int] | None) -> float:
    """Return how far the strongest beam moved; 0 where powers are not finite."""
    means = [x[:, 0].mean(axis=(0, 2)) for x in (truth, got) if x.size]
    if not means or not all(np.isfinite(mean).all() for mean in means):
        return 0.0
    shape = grid or (1, len(means[0]))
    (row, column), (other_row, other) = (np.unravel_index(int(x.argmax()), shape) for x in means)
    return math.hypot(float(row - other_row), float(column - other))
