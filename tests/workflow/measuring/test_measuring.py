"""Times behind a held stream, energy, the interval of a median, readings of a machine meanwhile."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from argand.device import cpu
from argand.runtime.measuring.timing import Queued

from workflow.measuring import samplers
from workflow.measuring.spread import CONFIDENCE, MIN_SAMPLES, WIDEST, narrow, spread_of
from workflow.measuring.surroundings import busy_seconds, load_of, read_gpu_clock, watching


@pytest.mark.parametrize(("waits", "tries"), [([], 1), (["once"], 2), (["once", "again"], 2)])
def test_a_call_that_waits_is_timed_once_more(
    monkeypatch: pytest.MonkeyPatch, waits: Sequence[str], tries: int
) -> None:
    made: list[bool] = []

    def queued(calls: Sequence[object], count: int, *, held: bool) -> Queued:
        made.append(held)
        return Queued([1.0] * count, [0.1] * count, held and len(made) > len(waits))

    monkeypatch.setattr(samplers, "queued", queued)
    found = samplers.queued_times([lambda: None], held=True)
    assert found.held == (len(waits) < 2)
    assert made == [True] * tries
    made.clear()
    assert not samplers.queued_times([lambda: None], held=False).held
    assert made == [False]


@pytest.mark.parametrize(("host_us", "joules"), [(90.0, 0.5), (110.0, None)])
def test_a_gpu_that_waits_for_the_host_has_no_energy(
    monkeypatch: pytest.MonkeyPatch, host_us: float, joules: float | None
) -> None:
    sampler = object.__new__(samplers.GpuSampler)
    sampler.seconds, sampler._host, sampler._held = [1e-4] * 9, [1e-6 * host_us] * 9, False
    sampler._calls, sampler._turn, sampler._sustained = [lambda: None], count(), False
    monkeypatch.setattr(samplers.GpuSampler, "_joules", lambda self: 0.5)
    assert sampler.timing().energy_j == joules


def test_six_samples_are_the_fewest_with_an_interval() -> None:
    few = spread_of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (few.low, few.high, few.settled) == (None, None, False)
    assert len([1.0] * 5) == MIN_SAMPLES - 1
    found = spread_of([6.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.low, found.p50, found.high) == (1.0, 3.5, 6.0)


def test_places_are_those_of_the_tables() -> None:
    """Ranks of the 95% interval of a median, counted from 1: Conover 1999, table A3 at p = 0.5."""
    for number, first in ((6, 1), (9, 2), (12, 3), (20, 6), (30, 10), (50, 18)):
        found = spread_of([float(x) for x in range(1, number + 1)])
        assert (found.low, found.high) == (first, number + 1 - first)


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


def test_busy_are_all_but_idle_and_waiting_cores_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2})
    stat = tmp_path / "stat"
    stat.write_text(
        "cpu 9999 0 0 0 0 0 0 0 0 0\n"
        "cpu0 100 20 30 5000 400 5 6 7 50 50\n"
        "cpu1 7777 0 0 0 0 0 0 0 0 0\n"
        "cpu2 1 0 0 0 0 0 0 0 0 0\n"
        "intr 5\n"
    )
    assert busy_seconds(stat) == pytest.approx(169 / os.sysconf("SC_CLK_TCK"))
    assert busy_seconds(tmp_path / "none") is None
    stat.write_text("cpu0 0 0 0 0 0 0 0 0 0 0\n")  # a sandbox that counts nothing
    assert busy_seconds(stat) is None


def test_the_load_is_that_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_of(10.0, 16.0, 4.0, 2.0) == 1.0
    assert load_of(10.0, 11.0, 4.0, 2.0) == 0.0  # ticks are coarser than our own clock
    assert load_of(10.0, 16.0, 4.0, 0.0) is None
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0, 0.0, 0.0))
    assert load_of(None, None, 4.0, 2.0) == 1.0

    def no_average() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", no_average)
    assert load_of(None, None, 4.0, 2.0) is None


def test_a_region_is_watched() -> None:
    with watching(cpu()) as watch:
        watch.sample()
    found = watch.found
    assert found.load is None or found.load >= 0
    assert found.clock_mhz is None or found.clock_mhz > 0
    assert found.throttling == ""


class Nvml:
    """A stand-in for the part of pynvml that is read."""

    NVML_CLOCK_SM = 1

    class NVMLError(Exception):
        """An error of NVML's."""

    def __init__(self, reasons: int | None) -> None:
        self.reasons = reasons

    def nvmlDeviceGetClockInfo(self, handle: object, kind: int) -> int:  # noqa: N802
        return 1980

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: object) -> int:  # noqa: N802
        if self.reasons is None:
            raise self.NVMLError
        return self.reasons


def test_what_holds_a_clock_down_is_said_in_words() -> None:
    assert read_gpu_clock(Nvml(0x1), None) == (1980.0, ())  # idle is not a reason
    assert read_gpu_clock(Nvml(0x24), None) == (1980.0, ("power cap", "thermal, by software"))
    assert read_gpu_clock(Nvml(None), None) == (1980.0, ())
