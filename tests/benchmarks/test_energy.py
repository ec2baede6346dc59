"""Watts from a counter of energy that moves on seldom."""

from __future__ import annotations

import pytest

from benchmarks.harness.energy import Sustained, slope_watts


def readings(watts: float, period_s: float, end_s: float) -> list[tuple[float, int]]:
    """Every 10 ms, of a counter that moves on each period."""
    times = [0.01 * i for i in range(round(100 * end_s))]
    return [(t, round(1e3 * watts * period_s * ((t + 1e-6) // period_s))) for t in times]


@pytest.mark.parametrize("period_s", [0.02, 0.1])
def test_watts_are_those_between_two_moves_of_the_counter(period_s: float) -> None:
    found = readings(700, period_s, 0.57)
    assert slope_watts(found) == pytest.approx(700, rel=0.05)
    held = [*found, *((0.57 + 0.01 * i, found[-1][1]) for i in range(50))]
    assert slope_watts(held) == slope_watts(found)


def test_a_counter_that_moved_once_tells_nothing() -> None:
    with pytest.raises(ValueError, match="moved 1 times; measure for longer"):
        slope_watts(readings(700, 0.1, 0.15))


def test_power_is_energy_over_time() -> None:
    assert Sustained(time_us=2000, energy_mj=1400, clock_mhz=None).power_w == pytest.approx(700)
