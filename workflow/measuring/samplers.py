"""One computation that is timed: batches of its calls on a CPU, queued calls on a GPU."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from argand import Device
from argand.runtime.measuring.timing import (
    Queued,
    back_to_back_seconds,
    call_for,
    queued,
    queued_seconds,
)

from workflow.measuring.nvml import energy
from workflow.measuring.spread import spread_of

Call = Callable[[], object]
Clock = Callable[[], float]

_BATCH_SECONDS = 1e-2
"""Seconds of a batch on a CPU, about. A scheduler gives others a core for milliseconds at a time,
so a batch of short calls holds one that nothing interrupted."""
_MAX_BATCH = 20
_GPU_ROUND = 5
"""Calls that a GPU has queued in each round."""
_ENERGY_SECONDS = 0.3
"""NVML's energy counter moves every few tens of milliseconds: shorter regions say nothing."""
_MAX_CALLS_FOR_ENERGY = 5000
"""Shorter calls than this many in a region wait for the host: their energy would be idling's."""
_SHORT_SECONDS = 1e-3
_CALLS_TO_SETTLE = 8
"""Short calls before a stream is held: what is prepared for calls that repeat, such as graphs, may
wait for the device."""
_BACK_TO_BACK_LOOPS = 5
_BACK_TO_BACK_SECONDS = 0.1
"""Seconds that all loops take together, about."""
_BACK_TO_BACK_CALLS = (100, 1000)
"""Fewest and most calls of all loops. Where fewer fit, a call is so long that it hides the host."""


@dataclass(frozen=True)
class Timing:
    """Quantiles of a call's time in microseconds over ``iterations``, and joules of one call.

    Attributes:
        time_us_p20, time_us_p50, time_us_p80: over batches, of each the shortest call. On a GPU
            each call is a batch of its own, for no other program of the host delays it.
        iterations: how many batches.
        energy_j: None where there is no counter, or calls are so short, or take the host so long,
            that the GPU would wait for it.
        time_us_low, time_us_high: the interval of the median (`workflow.measuring.spread`); None
            where there are too few batches.
        settled: whether it is narrow; None where nobody asks.
        host_us: on a GPU, the median of the time that the host takes to make a call.
        held: whether the device did not wait for it: then the quantiles are the device's alone.
        back_to_back_us: the time from one call to the next of many on the same operands, where
            calls are short.
    """

    time_us_p20: float
    time_us_p50: float
    time_us_p80: float
    iterations: int
    energy_j: float | None = None
    host_us: float | None = None
    held: bool | None = None
    back_to_back_us: float | None = None
    time_us_low: float | None = None
    time_us_high: float | None = None
    settled: bool | None = False


class Sampler(ABC):
    """One computation: its calls, and what a batch of them took."""

    def __init__(self, calls: Sequence[Call], turn: Iterator[int]) -> None:
        self._calls = calls
        self._turn = turn
        self.seconds: list[float] = []
        self.spent = 0.0

    def _next(self) -> Call:
        return self._calls[next(self._turn) % len(self._calls)]

    @abstractmethod
    def sample(self) -> None:
        """Time one batch more, on a GPU a few."""

    @abstractmethod
    def timing(self) -> Timing:
        """Return the times of the batches."""


class CpuSampler(Sampler):
    """Batches of calls by a clock of the host."""

    def __init__(
        self, calls: Sequence[Call], turn: Iterator[int], clock: Clock, warmup: int, sustain: float
    ) -> None:
        super().__init__(calls, turn)
        self._clock = clock
        for _ in range(warmup):
            self._next()()
        call_for(calls, sustain, lambda: None)
        self._shortest = math.inf

    def sample(self) -> None:
        """Time a batch of as many calls as the shortest one so far leaves time for."""
        times: list[float] = []
        while len(times) < self._calls_of_a_batch():
            times.append(self._timed())
            self._shortest = min(self._shortest, times[-1])
        self.seconds.append(min(times))
        self.spent += sum(times)

    def _calls_of_a_batch(self) -> int:
        calls = round(_BATCH_SECONDS / max(self._shortest, 1e-9))
        return min(max(1, calls), _MAX_BATCH)

    def _timed(self) -> float:
        call = self._next()
        started = self._clock()
        call()
        return self._clock() - started

    def timing(self) -> Timing:
        """Return quantiles and interval of the batches."""
        return _timing(self.seconds)


class GpuSampler(Sampler):
    """Calls are queued before the first is waited for, so that the host's part overlaps."""

    def __init__(
        self, calls: Sequence[Call], turn: Iterator[int], device: Device, warmup: int,
        sustain: float, held: bool,
    ) -> None:  # fmt: skip
        super().__init__(calls, turn)
        import cupy

        self._cupy, self._device = cupy, device
        for _ in range(warmup):
            self._next()()
        wait = cupy.cuda.get_current_stream().synchronize
        with energy(cupy, device) as sustained:
            done = call_for(calls, sustain, wait)
        self._sustained = sustain >= _ENERGY_SECONDS
        measured = self._sustained and sustained and done <= _MAX_CALLS_FOR_ENERGY
        self._energy_j = sustained[0] / done if measured else None
        single = queued_times(calls[-1:], held)
        if held and single.seconds[0] < _SHORT_SECONDS:
            for _ in range(_CALLS_TO_SETTLE):
                self._next()()
            wait()
        self._held = single.held
        self._host: list[float] = []
        # A first round must tell whether so many calls are too many.
        self._count = 1 if single.seconds[0] > 1.0 else _GPU_ROUND

    def sample(self) -> None:
        """Time as many calls as are queued at once, each a batch of its own."""
        found = queued_times([self._next() for _ in range(self._count)], self._held)
        self.seconds += found.seconds
        self._host += found.host_seconds
        self._held = found.held
        self.spent += sum(found.seconds)

    def timing(self) -> Timing:
        """Return the times, with a call's energy and the host's part where they were measured."""
        host = 1e6 * float(np.median(self._host))
        found = _timing(self.seconds)
        followed = None
        if self._held:
            followed = _back_to_back(self._calls[0], max(found.time_us_p50, host))
        energy = None
        if host <= found.time_us_p50:  # else the GPU waits for the host, which takes energy too
            energy = self._energy_j if self._sustained else self._joules()
        return replace(
            found, energy_j=energy, host_us=host, held=self._held, back_to_back_us=followed
        )

    def _joules(self) -> float | None:
        """Return a call's joules, by calls long enough for the counter, after the clock stopped."""
        median = max(float(np.median(self.seconds)), 1e-9)
        count = math.ceil(_ENERGY_SECONDS / median)
        if count > _MAX_CALLS_FOR_ENERGY:
            return None
        with energy(self._cupy, self._device) as joules:
            queued_seconds(self._calls, count)
        return joules[0] / count if joules else None


def queued_times(calls: Sequence[Call], held: bool) -> Queued:
    """Return the times of each call, queued behind a held stream if ``held``.

    Where one of them waited for the device they are timed once more: it may have allocated memory
    or made a graph, which it does not do again. Without the hold, times are the host's.
    """
    found = queued(calls, len(calls), held=held)
    return queued(calls, len(calls), held=True) if held and not found.held else found


def _timing(seconds: Sequence[float]) -> Timing:
    found = spread_of([1e6 * value for value in seconds])
    return Timing(
        found.p20, found.p50, found.p80, len(seconds),
        time_us_low=found.low, time_us_high=found.high, settled=found.settled,
    )  # fmt: skip


def _back_to_back(call: Call, microseconds: float) -> float | None:
    """Return the microseconds from one call to the next, where a call takes about as long as that.

    The median of some loops: the host may have others to serve.
    """
    least, most = _BACK_TO_BACK_CALLS
    count = min(most, int(_BACK_TO_BACK_SECONDS / (1e-6 * microseconds)))
    if count < least:
        return None
    loops = [back_to_back_seconds(call, count // _BACK_TO_BACK_LOOPS)
             for _ in range(_BACK_TO_BACK_LOOPS)]  # fmt: skip
    return 1e6 * float(np.median(loops))
