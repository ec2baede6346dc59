"""Timing on a GPU: events around calls, and a stream that is held until all of them are queued."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argand.runtime.compile.dependent_launch import WAIT_FIRST

Calls = Sequence[Callable[[], object]]

_AT_ONCE = 25
"""Calls that are queued behind a held stream: the driver queues about a thousand launches."""
_WAIT_SECONDS = 0.01
"""Seconds between waits for the calls of a sustained region, so that it ends in time."""
_LONGEST_SECONDS = 0.5
"""Longest time for which a stream is held, should the host never release it."""
HOLD_KERNEL = "hold_stream"
HOLD_SOURCE = f"""
#include "device/clock.cuh"
#include "device/dependent_launch.cuh"
// Keeps the stream waiting until flag[0] is set; flag[1] says that it was not within `longest` ns.
extern "C" __global__ void {HOLD_KERNEL}(volatile unsigned int* flag, long long longest) {{
{WAIT_FIRST}    const long long since = nanoseconds();
    while (flag[0] == 0) {{
        if (nanoseconds() - since > longest) {{
            flag[1] = 1;
            return;
        }}
        __nanosleep(1000);
    }}
}}
"""


@dataclass(frozen=True)
class Queued:
    """Times of calls: of the device between two events around each, and of the host to make each.

    ``held`` says that the device began the first call after the host had made them all, so that
    its times contain no waiting for the host.
    """

    seconds: list[float]
    host_seconds: list[float]
    held: bool = False


def call_for(calls: Calls, seconds: float, wait: Callable[[], object]) -> int:
    """Make calls in turn for this long and return how many; ``wait`` waits for the device.

    A card at its power limit then runs at the clock that these calls allow.
    """
    done, step, started = 0, 1, time.perf_counter()
    while (before := time.perf_counter()) - started < seconds:
        for index in range(done, done + step):
            calls[index % len(calls)]()
        wait()
        done += step
        if time.perf_counter() - before < _WAIT_SECONDS:
            step *= 2
    return done


def back_to_back_seconds(call: Callable[[], object], count: int) -> float:
    """Return the host's seconds from one of ``count`` calls to the next on the current stream.

    The same call is repeated as in a program's loop; the host waits for the device at the end.
    """
    import cupy

    stream = cupy.cuda.get_current_stream()
    call()
    stream.synchronize()
    started = time.perf_counter()
    for _ in range(count):
        call()
    stream.synchronize()
    return (time.perf_counter() - started) / count


def queued_seconds(calls: Calls, count: int) -> list[float]:
    """Return the seconds of each of ``count`` calls, taken in turn, on the current stream.

    All are queued before the host waits for the first, so that the host's part overlaps. Raises the
    CUDA error of a kernel.
    """
    return queued(calls, count).seconds


def queued(calls: Calls, count: int, *, held: bool = False) -> Queued:
    """Time ``count`` calls, taken in turn, on the current stream.

    With ``held`` the stream waits until they are queued, 25 at a time. A call that itself waits for
    the device cannot be timed so: the stream is then released after half a second, and all calls
    are timed again without.
    """
    if held:
        found: list[Queued] = []
        for first in range(0, count, _AT_ONCE):
            found.append(_timed(calls, first, min(_AT_ONCE, count - first), held=True))
            if not found[-1].held:  # after half a second, which the next ones would take too
                break
        else:
            return Queued(
                [x for part in found for x in part.seconds],
                [x for part in found for x in part.host_seconds],
                held=True,
            )
    return _timed(calls, 0, count, held=False)


def _timed(calls: Calls, first: int, count: int, *, held: bool) -> Queued:
    import cupy

    events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(count)]
    hold = _Hold() if held else None
    host = []
    try:
        for index, (before, after) in enumerate(events):
            before.record()
            started = time.perf_counter()
            calls[(first + index) % len(calls)]()
            host.append(time.perf_counter() - started)
            after.record()
    finally:
        if hold is not None:
            hold.release()
    cupy.cuda.get_current_stream().synchronize()
    seconds = [1e-3 * float(cupy.cuda.get_elapsed_time(*pair)) for pair in events]
    return Queued(seconds, host, hold is not None and hold.lasted)


class _Hold:
    """Holds the current stream until `release`, or for half a second."""

    def __init__(self) -> None:
        import cupy

        from argand.device import gpu
        from argand.runtime.compile.loading import load

        self._memory: Any = cupy.cuda.alloc_pinned_memory(8)
        self._flag = np.frombuffer(self._memory, np.uint32, 2)
        self._flag[:] = 0
        kernel = load(HOLD_SOURCE, gpu(cupy.cuda.Device().id).target, HOLD_KERNEL)
        kernel.function((1,), (1,), (np.uint64(self._memory.ptr), np.int64(1e9 * _LONGEST_SECONDS)))

    def release(self) -> None:
        """Let the stream go on."""
        self._flag[0] = 1

    @property
    def lasted(self) -> bool:
        """Whether the stream was held until `release`; known when it has gone on."""
        return not self._flag[1]
