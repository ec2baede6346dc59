"""The a-priori bounds on spectral estimates, for every precision.

P_k is the mean of |X_sk|^2 over the segments s of a group, on both sides, and T the sum of P_k over
all N bins: the mean of |X_s|^2. If the amplitudes X_sk are off by e_sk, and e_k^2 is the mean of
|e_sk|^2, then by Cauchy and Schwarz the mean of ||X_sk + e_sk|^2 - |X_sk|^2| is at most

    2 sqrt(P_k) e_k + e_k^2,

and the sum of e_k^2 over all bins is at most e^2, e = c sqrt(T) + l, where c is the relative and l
the absolute error of a windowed segment's transform in the 2-norm. Where a trend was subtracted,
l is also what that is off by, which follows from the samples as they were.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from argand import PRECISIONS, Precision, SpectrumProblem
from argand.channelise.plan import LARGEST_BATCH
from argand.dft.method import method_for, prime_factors
from argand.dft.plan_words import plan_in, plan_words

from workflow.accuracy.bounds import accumulator_roundoff, gamma, roundings, transform_bound
from workflow.accuracy.channelise_bounds import KERNEL, bank_transform_bound
from workflow.accuracy.probabilistic import concentration, deviations
from workflow.accuracy.transform_deviations import (
    library_deviation,
    method_deviation,
    plan_deviation,
    reference_deviation,
)
from workflow.accuracy.underflow import underflow

_WINDOWED = 5
"""Roundings of a windowed sample."""
BLOCKS = "blocks"
"""Value of ``ran`` where our blocks of segments computed on the CPU."""
_STAGES = 16
"""More than a transform of any plan has."""


@dataclass(frozen=True)
class SpectraBound:
    """Bounds on the means of squares; `of_bins` and `of_rows` evaluate them.

    Attributes:
        worst: c in the worst case.
        probable: c that the error of one of all groups exceeds with `FAILURE`.
        of_peak: error of an amplitude over a segment's largest one that one of all bins exceeds as
            rarely: errors are spread at least as far as the signal itself.
        squares: relative to |X^|^2, of squares, sums and the mean, and of the reference's.
        lost: l, by underflow.
        subtracted: l of a segment whose largest sample and window are 1, N times in power, by the
            subtraction of a trend; 0 without one.
        floor: absolute, of a power, by underflow of squares.
        sides: 2 for one-sided results, whose inner bins are doubled; else 1.
    """

    worst: float
    probable: float
    of_peak: float
    squares: float
    lost: float
    subtracted: float
    floor: float
    sides: int

    def of_bins(self, power: Any, total: Any, given: Any, *, peak: Any = None) -> Any:
        """Return the bound on each bin's error: in the worst case, or with ``peak`` probable.

        Args:
            power: (..., bins) of the result, doubled where its bins are.
            total: (..., 1), T.
            given: (..., 1), what T would be of segments whose samples are all as their largest one
                before a trend was subtracted.
            peak: (..., 1), the mean over segments of the largest |X_sk|^2.
        """
        e = self.worst * np.sqrt(total)
        if peak is not None:
            e = np.minimum(e, self.of_peak * np.sqrt(peak))
        moved = self._moved(power, e, given)
        return moved + self.squares * (power + moved) + self.floor

    def of_rows(
        self, largest: Any, total: Any, given: Any, norm: Any, bins: int, *, worst: bool
    ) -> Any:
        """Return the bound on the 2-norm of a row's error.

        Args:
            largest: the largest of the row's powers.
            total, given: as in `of_bins`.
            norm: the 2-norm of the row's powers.
            bins: the number of bins of the row.
            worst: whether in the worst case, else probable.
        """
        e = (self.worst if worst else self.probable) * np.sqrt(total)
        moved = self._moved(largest, e, given)
        return moved + self.squares * (norm + moved) + self.floor * math.sqrt(bins)

    def _moved(self, power: Any, e: Any, given: Any) -> Any:
        """Return 2 sqrt(P) e + e^2, of both sides; at the largest P, of a row's 2-norm."""
        e = e + self.lost + self.subtracted * np.sqrt(given)
        return 2 * np.sqrt(self.sides * power) * e + self.sides * e**2


def spectra_bound(
    precision: Precision, problem: SpectrumProblem, backend: str, *, rows: int, ran: str = ""
) -> SpectraBound:
    """Return the bounds on spectral estimates.

    Args:
        precision: the precision of the estimate.
        problem: the sizes and options.
        backend: ``cpu`` or ``cuda``.
        rows: rows of samples.
        ran: `KERNEL` where one kernel did everything, `BLOCKS`, or the plan of `argand.dft` in
            words; empty where a library did, of whose sums only their type is known.

    A windowed sample passes five roundings in the type of the transform: of the sample, of the
    window where it is given in that type, of the scale that follows from it, of the coefficient,
    which is both, and of their product. The transform's own error is relative to it. Two squares
    and their sum are two roundings; the kernel adds those of a batch of segments in fp32, at most
    `LARGEST_BATCH`, a library all of them; everything else is fp64's. The mean is rounded twice.

    Before a trend is subtracted a sample is rounded to the transform's type. A mean of N samples of
    at most 1 is off by gamma_N, and a line by 3/2 of that more, since a slope is a sum of N terms
    of at most N / 2 over N^3 / 12; ours and the reference's are less than 8 gamma in all. Ours
    are found in fp64, a library's in its type.
    """
    length, average, real = problem.length, problem.average, problem.real
    groups = max(1, rows * problem.groups)
    u, exact = accumulator_roundoff(precision), PRECISIONS["fp64"]
    plan = "" if ran == BLOCKS else ran
    if real and plan == plan_words(None):  # real rows, in fp32 or fp64 as the kernel's
        plan = KERNEL
    own = bank_transform_bound(precision, length, backend, real, plan)
    windowed = roundings(_WINDOWED, u)
    reference = transform_bound(exact, prime_factors(length), "cpu") + roundings(6, exact.u)
    worst = (1 + windowed) * (1 + own) - 1 + reference
    deviation = math.hypot(_deviation(precision, length, backend, plan), math.sqrt(_WINDOWED) * u)
    deviation += reference_deviation(length)
    in_batch = min(LARGEST_BATCH, average) if ran == KERNEL else 1 if ran else average
    squares = gamma(4 + in_batch, u) + 2 * gamma(average + 6, exact.u)
    terms = underflow(precision, backend)
    lost = _STAGES * 4.0 * length**2 * (terms.operand + terms.result)
    return SpectraBound(
        worst=worst,
        probable=min(worst, deviation * concentration(length if real else 2 * length, groups)),
        of_peak=deviation * deviations(groups * problem.bins * average),
        squares=squares,
        lost=lost,
        subtracted=u + 8 * gamma(length + 8, exact.u if ran else u) if problem.detrend else 0.0,
        floor=4 * terms.result,
        sides=2 if problem.onesided else 1,
    )


def _deviation(precision: Precision, length: int, backend: str, ran: str) -> float:
    """Return the deviation of one transform, relative to its norm."""
    if ran == KERNEL or precision.exact_operands:
        row = precision if precision.exact_operands else PRECISIONS["fp32"]
        return library_deviation(row, length)
    if ran:
        return plan_deviation(plan_in(ran), precision, length)
    return method_deviation(precision, method_for(length), backend)
