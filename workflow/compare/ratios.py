"""Ratio of two medians with its interval, from what a table records of the times.

A table has quantiles, not the times of every call. Where it has a 95 % interval of the median
(``time_us_low``, ``time_us_high``), medians are drawn from a normal distribution of its logarithm
with that interval, each side with a width of its own. Else they are drawn by a parametric
bootstrap: the time of a call is taken to have the quantile function whose logarithm is linear
between the recorded p20, p50 and p80, and goes on with the same slopes; the median of n calls of it
is its value at a Beta((n + 1) / 2, (n + 1) / 2) distributed probability. The slopes are themselves
estimates, so each draw has slopes of its own, from a chi-square of `_FREEDOM` n degrees of freedom,
as the mean of few values follows Student's distribution. Both are intervals of what
one run says of itself: a drift between runs is not in them, which is what a margin is for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workflow.compare.reading import Key, Times

CONFIDENCE = 0.95
_DRAWS = 4000
"""The ends of a 95 % interval then stand at the 100th draw from either side."""
_MIN_CALLS = 3
"""Calls below which quantiles say nothing of a spread."""
_FREEDOM = 0.46
"""Degrees of freedom, for each call, of a spread taken from p20 and p80. For normal times the
relative variance of p80 - p20 is 2 (0.16 - 0.04) / (0.28 * 1.683)^2 / n = 1.08 / n, and that of a
standard deviation from f degrees of freedom 1 / (2 f)."""
_WIDTH = 1.959963984540054
"""Standard deviations on either side that hold 95 % of a normal distribution."""

Draws = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """A ratio, and the 95 % interval that it lies in; None where no spread is recorded."""

    value: float
    low: float | None = None
    high: float | None = None


def time_ratio(before: Times, after: Times, key: Key) -> Ratio:
    """Return the median time after over that before; below 1 is faster.

    The same times of the same row give the same interval, whatever the other rows are. Raises
    ValueError for medians whose ratio is 0 or not finite.
    """
    value = after.p50 / before.p50
    if not math.isfinite(value) or value == 0:
        raise ValueError(f"medians of {before.p50} and {after.p50} us have no ratio")
    drawn = []
    for side, times in enumerate((before, after)):
        medians = _medians(times, np.random.default_rng([side, *"\0".join(key).encode()]))
        if medians is None:
            return Ratio(value)
        drawn.append(medians)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.exp(np.quantile(drawn[1] - drawn[0], [tail, 1 - tail]))
    return Ratio(value, float(low), float(high))


def _medians(times: Times, rng: np.random.Generator) -> Draws | None:
    """Return logarithms of medians that a repeated run may have.

    They are None where no spread is recorded.
    """
    centre = math.log(times.p50)
    if times.low is not None and times.high is not None:
        normal = rng.standard_normal(_DRAWS)
        below, above = centre - math.log(times.low), math.log(times.high) - centre
        return centre + normal * np.where(normal < 0, below, above) / _WIDTH
    few = times.iterations is None or times.iterations < _MIN_CALLS
    if few or times.p20 is None or times.p80 is None:
        return None
    calls = times.iterations or 0
    freedom = _FREEDOM * calls
    place = rng.beta((calls + 1) / 2, (calls + 1) / 2, _DRAWS) - 0.5
    place *= np.sqrt(freedom / rng.chisquare(freedom, _DRAWS))
    below, above = centre - math.log(times.p20), math.log(times.p80) - centre
    return centre + place * np.where(place < 0, below, above) / 0.3
