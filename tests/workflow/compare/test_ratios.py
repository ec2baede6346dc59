"""Intervals of ratios: what they cover, against runs that are simulated call by call."""

from __future__ import annotations

import numpy as np
import pytest

from workflow.compare.ratios import time_ratio
from workflow.compare.reading import Times

KEY = ("w", "argand", "fp32", "")


def measured(rng: np.random.Generator, calls: int, median: float, spread: float) -> Times:
    """Records of calls whose logarithms are normal."""
    drawn = median * np.exp(spread * rng.standard_normal(calls))
    p20, p50, p80 = map(float, np.quantile(drawn, [0.2, 0.5, 0.8]))
    return Times(p20=p20, p50=p50, p80=p80, iterations=calls)


@pytest.mark.parametrize(("calls", "spread"), [(3, 0.1), (5, 0.05), (20, 0.3), (200, 0.1)])
def test_the_interval_covers_the_true_ratio(
    calls: int, spread: float, rng: np.random.Generator
) -> None:
    """In at least 95 of 100 pairs of runs, also of few calls, whose quantiles are themselves noise.

    Of normal logarithms it is 12 % wider than need be: the line from p20 to p80 is steeper than the
    quantile function at the median.
    """
    covered = 0
    for pair in range(200):
        before, after = measured(rng, calls, 10.0, spread), measured(rng, calls, 13.0, spread)
        ratio = time_ratio(before, after, (str(pair), *KEY[1:]))
        assert ratio.low is not None
        assert ratio.high is not None
        covered += ratio.low <= 1.3 <= ratio.high
    assert covered / 200 >= 0.95


def test_more_calls_make_it_narrower() -> None:
    widths = []
    for calls in (5, 20, 100):
        times = Times(p20=9, p50=10, p80=12, iterations=calls)
        ratio = time_ratio(times, times, KEY)
        assert ratio.value == 1
        assert ratio.low is not None
        assert ratio.high is not None
        assert ratio.low < 1 < ratio.high
        widths.append(ratio.high / ratio.low)
    assert widths[0] > widths[1] > widths[2]


def test_an_interval_that_the_run_recorded_is_used() -> None:
    """Two equal normal intervals of the logarithm make one of the ratio that is sqrt(2) as wide."""
    times = Times(p20=1, p50=10, p80=100, low=10 / 1.1, high=11, iterations=20)
    ratio = time_ratio(times, times, KEY)
    assert ratio.low == pytest.approx(1.1 ** -(2**0.5), rel=0.02)
    assert ratio.high == pytest.approx(1.1 ** (2**0.5), rel=0.02)


@pytest.mark.parametrize(
    "times",
    [
        Times(p50=10),
        Times(p20=9, p50=10, p80=12),
        Times(p20=9, p50=10, p80=12, iterations=2),
        Times(p50=10, iterations=20),
        Times(p50=10, low=9, iterations=20),
    ],
)
def test_without_a_spread_there_is_no_interval(times: Times) -> None:
    ratio = time_ratio(times, Times(p20=9, p50=20, p80=22, iterations=20), KEY)
    assert (ratio.value, ratio.low, ratio.high) == (2, None, None)


def test_other_rows_do_not_change_it() -> None:
    times = Times(p20=9, p50=10, p80=12, iterations=20)
    assert time_ratio(times, times, KEY) == time_ratio(times, times, KEY)
