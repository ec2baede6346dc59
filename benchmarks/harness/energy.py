"""Energy of calls in a row of themselves: the slope of NVML's counter while a GPU never rests."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from argand import Device

from benchmarks.harness.conditions import monitor
from workflow.nvml import energy_counter

_BATCH_SECONDS = 0.02
"""Calls between two readings of the counter, which moves on every 20 to 100 ms. A reading takes
milliseconds where the driver is far away, so two batches are queued meanwhile."""
_TRIES, _TRIED = 3, 10
"""Batches, and calls of each, by the fastest of which the length of batches is chosen."""
Reading = tuple[float, int]
"""Seconds of a clock, and millijoules that the counter had then."""


class Sustained(NamedTuple):
    """A call in a row of itself: its time and energy, and the median clock, None where unknown."""

    time_us: float
    energy_mj: float
    clock_mhz: float | None

    @property
    def power_w(self) -> float:
        """The mean power."""
        return 1e3 * self.energy_mj / self.time_us


class EnergyMeter:
    """Measures calls on a GPU in a row of themselves.

    Args:
        cupy: the module.
        device: the current GPU.
        settle: seconds of calls before the measurement, after which the clock is the one that power
            allows.
        seconds: of the measurement: some periods of the counter.

    Raises SystemExit where NVML has no counter of energy.
    """

    def __init__(self, cupy: Any, device: Device, settle: float, seconds: float) -> None:
        read = energy_counter(cupy, device)
        if read is None:
            raise SystemExit(f"NVML counts no energy of {device.name}; take another GPU")
        self._cupy, self._read, self._watch = cupy, read, monitor(device)
        self._settle, self._seconds = settle, seconds

    def __call__(self, call: Callable[[], object]) -> Sustained:
        """Return the time, the energy and the clock of a call that queues work."""
        self._run(call, 1, 0.0)
        each = min(self._run(call, _TRIED, 0.0)[0] for _ in range(_TRIES))
        count = max(1, round(_BATCH_SECONDS / each))
        self._run(call, count, self._settle)
        with self._watch.watching() as samples:
            seconds, readings = self._run(call, count, self._seconds)
        energy_mj = 1e3 * slope_watts(readings) * seconds
        return Sustained(1e6 * seconds, energy_mj, samples.conditions.clock_mhz)

    def _run(
        self, call: Callable[[], object], count: int, seconds: float
    ) -> tuple[float, list[Reading]]:
        """Return seconds of a call, and readings between batches of ``count``, always queued."""
        event = self._cupy.cuda.Event
        first, queued = event(), deque[Any]()
        readings, batches, begin = list[Reading](), 0, time.perf_counter()
        first.record()
        while not batches or time.perf_counter() < begin + seconds:
            for _ in range(count):
                call()
            queued.append(event())
            queued[-1].record()
            batches += 1
            if len(queued) > 2:
                queued.popleft().synchronize()
            readings.append((time.perf_counter(), self._read()))
        last = queued[-1]
        last.synchronize()
        elapsed = 1e-3 * float(self._cupy.cuda.get_elapsed_time(first, last))
        return elapsed / (batches * count), readings


def slope_watts(readings: Sequence[Reading]) -> float:
    """Return watts: the slope of a line through the readings at which the counter had moved on.

    Raises ValueError where it did so less than twice.
    """
    moved = [after for before, after in pairwise(readings) if after[1] != before[1]]
    if len(moved) < 2:
        raise ValueError(f"the counter of energy moved {len(moved)} times; measure for longer")
    times, millijoules = np.array(moved).T
    return 1e-3 * float(np.polyfit(times - times[0], millijoules - millijoules[0], 1)[0])
