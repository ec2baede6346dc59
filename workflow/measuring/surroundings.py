"""The state of a machine while something was timed: load of others, clock, throttling."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argand import Device

from workflow.measuring.nvml import NvmlAbsentError, nvml_device

BUSY = 0.2
"""Cores that others keep busy, from which on they are worth a word."""
_PROC_STAT = Path("/proc/stat")
_CLOCKS = "cpu[0-9]*/cpufreq/scaling_cur_freq"
_SYSTEM_CPUS = Path("/sys/devices/system/cpu")
_IDLE_FIELDS = (3, 4)
"""Fields of a line of /proc/stat: idle, and waiting for a disk."""
_TIMES = 8
"""Fields of such a line before those that are counted twice (guests)."""
# nvml.h, nvmlClocksEventReason*: what holds a GPU's clock down.
_REASONS = {
    0x4: "power cap", 0x8: "hardware slowdown", 0x20: "thermal, by software",
    0x40: "thermal, by hardware", 0x80: "power brake",
}  # fmt: skip


@dataclass(frozen=True)
class Surroundings:
    """Readings while something was timed.

    Attributes:
        load: CPU cores that other programs kept busy, on average; None where nothing tells.
        clock_mhz: median of the device's clock; None where nothing tells.
        throttling: what held a GPU's clock down, in words; empty where nothing did or tells.
    """

    load: float | None = None
    clock_mhz: float | None = None
    throttling: str = ""


@dataclass
class Watch:
    """Samples of a region; `found` is complete after it."""

    clock: Callable[[], tuple[float | None, tuple[str, ...]]]
    clocks: list[float] = field(default_factory=list)
    reasons: dict[str, None] = field(default_factory=dict)
    load: float | None = None

    def sample(self) -> None:
        """Read the clock once more."""
        clock, reasons = self.clock()
        if clock is not None:
            self.clocks.append(clock)
        self.reasons |= dict.fromkeys(reasons)

    @property
    def found(self) -> Surroundings:
        """The readings."""
        clock = statistics.median(self.clocks) if self.clocks else None
        return Surroundings(self.load, clock, "; ".join(self.reasons))


@contextmanager
def watching(device: Device) -> Iterator[Watch]:
    """Watch a device and the machine around it while a block runs."""
    watch = Watch(_gpu_clock(device) if device.backend == "cuda" else _cpu_clock)
    busy, own, began = busy_seconds(), _own_seconds(), time.perf_counter()
    watch.sample()
    yield watch
    watch.sample()
    elapsed = time.perf_counter() - began
    watch.load = load_of(busy, busy_seconds(), _own_seconds() - own, elapsed)


def load_of(before: float | None, after: float | None, own: float, elapsed: float) -> float | None:
    """Return cores that others kept busy: what all spent less our own, over the time that passed.

    Without a count of what all spent it is the system's one-minute load average less our own part,
    and None where the system has neither.
    """
    if elapsed <= 0:
        return None
    if before is not None and after is not None:
        return max(0.0, (after - before - own) / elapsed)
    try:
        return max(0.0, os.getloadavg()[0] - own / elapsed)
    except OSError:
        return None


def busy_seconds(stat: Path = _PROC_STAT) -> float | None:
    """Return seconds that all programs, and other guests of the host, have kept our cores busy."""
    try:
        lines = stat.read_text(encoding="ascii").splitlines()
        cores = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        ticks = os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError):
        return None
    total, seen = 0, False
    for name, *fields in map(str.split, filter(None, lines)):
        if name in cores:
            seen = True
            own = [int(value) for value in fields[:_TIMES]]
            total += sum(value for at, value in enumerate(own) if at not in _IDLE_FIELDS)
    return total / ticks if seen and total else None


def _own_seconds() -> float:
    found = os.times()
    return found.user + found.system + found.children_user + found.children_system


def _cpu_clock() -> tuple[float | None, tuple[str, ...]]:
    """Return the median of all cores, where the system lets it be read."""
    found = []
    for path in _SYSTEM_CPUS.glob(_CLOCKS):
        try:
            found.append(1e-3 * int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return (statistics.median(found) if found else None), ()


def _gpu_clock(device: Device) -> Callable[[], tuple[float | None, tuple[str, ...]]]:
    import cupy

    try:
        nvml, handle = nvml_device(cupy, device)
    except NvmlAbsentError:
        return lambda: (None, ())
    return lambda: read_gpu_clock(nvml, handle)


def read_gpu_clock(nvml: Any, handle: Any) -> tuple[float | None, tuple[str, ...]]:
    """Return the clock of a GPU's multiprocessors in MHz, and what holds it down, by NVML."""
    clock, held = None, 0
    try:
        clock = float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
        held = int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    except (nvml.NVMLError, AttributeError):  # a card or a module without such a reading
        pass
    return clock, tuple(reason for bit, reason in _REASONS.items() if held & bit)
