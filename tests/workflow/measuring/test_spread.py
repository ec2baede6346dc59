"""The interval of a median: its confidence, and when it counts as narrow."""

from __future__ import annotations

import numpy as np
import pytest

from workflow.measuring.spread import CONFIDENCE, FEWEST, WIDEST, narrow, spread_of


def test_six_samples_are_the_fewest_with_an_interval() -> None:
    few = spread_of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (few.low, few.high, few.settled) == (None, None, False)
    assert len([1.0] * 5) == FEWEST - 1
    found = spread_of([6.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.low, found.p50, found.high) == (1.0, 3.5, 6.0)


def test_places_are_those_of_the_tables() -> None:
    """Ranks of the 95% interval of a median, counted from 1: Conover 1999, table A3 at p = 0.5."""
    for count, first in ((6, 1), (9, 2), (12, 3), (20, 6), (30, 10), (50, 18)):
        found = spread_of([float(x) for x in range(1, count + 1)])
        assert (found.low, found.high) == (first, count + 1 - first)


@pytest.mark.parametrize("count", [6, 11, 20, 45])
def test_the_interval_holds_the_median_as_often_as_it_says(
    count: int, rng: np.random.Generator
) -> None:
    """A skewed distribution, whose median is log 2; 4 sigma of the count of 2000 trials."""
    trials = 2000
    found = [spread_of(list(rng.exponential(size=count))) for _ in range(trials)]
    inside = sum((one.low or 0) <= np.log(2) <= (one.high or 0) for one in found)
    assert inside >= trials * CONFIDENCE - 4 * (trials * CONFIDENCE * (1 - CONFIDENCE)) ** 0.5


def test_narrow_is_relative_to_the_median() -> None:
    assert narrow(100.0, 95.0, 95.0 + 100 * WIDEST)
    assert not narrow(100.0, 94.0, 94.1 + 100 * WIDEST)
    assert not narrow(100.0, None, None)


def test_nothing_has_no_spread() -> None:
    with pytest.raises(ValueError, match="at least one, got none"):
        spread_of([])
