"""The spread of a set of times: quantiles, the interval of their median, whether it is narrow.

The interval is of order statistics: the k-th shortest and the k-th longest of n independent samples
hold the median of what they are drawn from between them with a probability that the binomial
distribution gives, whatever that distribution is (David and Nagaraja 2003, section 7.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
"""Least confidence of the interval of a median."""
MIN_SAMPLES = 6
"""Samples that have an interval of this confidence: 1 - 2 / 2^6 is 0.97."""
WIDEST = 0.1
"""Width of a settled time's interval, over the median."""


@dataclass(frozen=True)
class Spread:
    """Quantiles of samples, and the interval of their median; in the unit of the samples.

    ``low`` and ``high`` are None where there are fewer than `MIN_SAMPLES` samples.
    """

    p20: float
    p50: float
    p80: float
    low: float | None
    high: float | None

    @property
    def settled(self) -> bool:
        """Whether the median is known to a tenth."""
        return narrow(self.p50, self.low, self.high)


def narrow(median: float, low: float | None, high: float | None) -> bool:
    """Return whether an interval is at most `WIDEST` of its median wide.

    It is not where there is none.
    """
    return low is not None and high is not None and high - low <= WIDEST * median


def spread_of(samples: Sequence[float]) -> Spread:
    """Return the quantiles of samples and the interval. Raises ValueError where there are none."""
    if not samples:
        raise ValueError("samples must hold at least one, got none")
    p20, p50, p80 = (float(q) for q in np.quantile(samples, (0.2, 0.5, 0.8)))
    place = _place(len(samples))
    if place is None:
        return Spread(p20, p50, p80, None, None)
    ordered = sorted(samples)
    return Spread(p20, p50, p80, ordered[place], ordered[-1 - place])


def _place(count: int) -> int | None:
    """Return the largest k for which the interval from k to count - 1 - k is confident enough.

    The median lies below the sample of place k with the probability of at most k heads in count
    throws of a coin.
    """
    outside, found = 0.0, None
    for k in range((count + 1) // 2):
        outside += math.exp(_log_binomial(count, k) - count * math.log(2))
        if 1 - 2 * outside < CONFIDENCE:
            break
        found = k
    return found


def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
