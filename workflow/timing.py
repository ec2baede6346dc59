"""How long a call takes and what energy it costs. Needs NumPy; on a GPU CuPy, NVML for energy."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from argand import Device
from argand.runtime.timing import (
    Queued,
    back_to_back_seconds,
    call_for,
    queued,
    queued_seconds,
)

Call = Callable[[], object]

REPEATS = 20
"""Calls that are timed at most, unless more are asked for."""
_LEAST_REPEATS = 3
_ENERGY_SECONDS = 0.3
"""NVML's energy counter moves every few tens of milliseconds: shorter regions say nothing."""
_MOST_CALLS_FOR_ENERGY = 5000
"""Shorter calls than this many in a region wait for the host: their energy would be idling's."""
_SHORT_SECONDS = 1e-3
_CALLS_TO_SETTLE = 8
"""Short calls before a stream is held: what is prepared for calls that repeat, such as graphs, may
wait for the device."""
_BACK_TO_BACK_LOOPS = 5
_BACK_TO_BACK_SECONDS = 0.1
_BACK_TO_BACK_CALLS = (100, 1000)
"""Loops; at least and at most so many calls in all of them, in so many seconds. Longer calls hide
the host."""
_MEMORY_SHARE = 4
"""Copies of the inputs take at most this fraction (one in) of a device's memory."""


@dataclass(frozen=True)
class Timing:
    """Quantiles of a call's time in microseconds over ``iterations``, and joules of one call.

    On a GPU ``host_us`` is the median of the time that the host takes to make a call, and ``held``
    whether the device did not wait for it: then the quantiles are the device's alone.
    ``back_to_back_us`` is from one call to the next of many on the same operands, where calls are
    short.
    """

    time_us_p20: float
    time_us_p50: float
    time_us_p80: float
    iterations: int
    energy_j: float | None = None
    host_us: float | None = None
    held: bool | None = None
    back_to_back_us: float | None = None


def measure(
    calls: Sequence[Call],
    device: Device,
    *,
    repeats: int = REPEATS,
    seconds: float = 0.5,
    warmup: int = 1,
    sustain: float = 0.0,
    max_seconds: float = 60.0,
    held: bool = False,
) -> Timing:
    """Time a computation until it ran ``repeats`` times or for ``seconds``, at least three times.

    Args:
        calls: the same computation over different copies of its inputs, used in turn, so that no
            copy is still in the cache when its turn comes (`rotations` says how many it takes).
        device: where it runs. On a GPU the clock is CUDA events around each call, without waiting
            in between; on the CPU it is `time.perf_counter`.
        repeats, seconds: whichever is reached first ends the measurement.
        warmup: calls before the clock starts (compilation, first touches, clocks).
        sustain: seconds of further calls before the clock starts, after which a card that throttles
            has done so; where they are enough for it, the energy is theirs.
        max_seconds: ends it after a single call where three would take longer.
        held: on a GPU, have the device begin only when calls are queued (`runtime.timing.queued`).

    Raises ValueError where there is nothing to call or a limit is not positive.
    """
    if not calls:
        raise ValueError("calls must hold at least one, got none")
    for name, value in (("repeats", repeats), ("seconds", seconds), ("max_seconds", max_seconds)):
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")
    if sustain < 0:
        raise ValueError(f"sustain must not be negative, got {sustain}")
    for index in range(warmup):
        calls[index % len(calls)]()
    if device.backend == "cuda":
        found, energy = _on_gpu(calls, device, repeats, seconds, sustain, max_seconds, held)
        host = 1e6 * float(np.median(found.host_seconds))
        quantiles = _quantiles(found.seconds)
        followed = _back_to_back(calls[0], max(quantiles[1], host)) if found.held else None
        return Timing(*quantiles, len(found.seconds), energy, host, found.held, followed)
    times = _on_cpu(calls, repeats, seconds, sustain, max_seconds)
    return Timing(*_quantiles(times), len(times))


def _quantiles(times: list[float]) -> tuple[float, float, float]:
    """20, 50 and 80 of a hundred, in microseconds."""
    p20, p50, p80 = (1e6 * float(q) for q in np.quantile(times, (0.2, 0.5, 0.8)))
    return p20, p50, p80


def _on_cpu(
    calls: Sequence[Call], repeats: int, seconds: float, sustain: float, max_seconds: float
) -> list[float]:
    call_for(calls, sustain, lambda: None)
    times: list[float] = []
    while not _enough(len(times), sum(times), repeats, seconds, max_seconds):
        started = time.perf_counter()
        calls[len(times) % len(calls)]()
        times.append(time.perf_counter() - started)
    return times


def _back_to_back(call: Call, microseconds: float) -> float | None:
    """Microseconds from one call to the next, where a call takes about as long as that.

    The median of some loops: the host may have others to serve.
    """
    least, most = _BACK_TO_BACK_CALLS
    count = min(most, int(_BACK_TO_BACK_SECONDS / (1e-6 * microseconds)))
    if count < least:
        return None
    loops = [back_to_back_seconds(call, count // _BACK_TO_BACK_LOOPS)
             for _ in range(_BACK_TO_BACK_LOOPS)]  # fmt: skip
    return 1e6 * float(np.median(loops))


def _enough(done: int, spent: float, repeats: int, seconds: float, max_seconds: float) -> bool:
    if done == 0:
        return False
    if done < _LEAST_REPEATS:
        return spent / done * _LEAST_REPEATS > max_seconds
    return done >= repeats or spent >= seconds


def _on_gpu(
    calls: Sequence[Call], device: Device, repeats: int, seconds: float, sustain: float,
    max_seconds: float, held: bool,
) -> tuple[Queued, float | None]:  # fmt: skip
    """What calls took, and joules of one.

    All are queued before the first is waited for, so that the host's part overlaps.

    Energy needs a longer region: where the timed calls are over too soon, more of them follow.
    """
    import cupy

    with cupy.cuda.Device(device.index):
        with _energy(cupy, device) as sustained:
            done = call_for(calls, sustain, cupy.cuda.get_current_stream().synchronize)
        single = queued(calls[-1:], 1, held=held)
        if held and single.seconds[0] < _SHORT_SECONDS:
            for index in range(_CALLS_TO_SETTLE):
                calls[index % len(calls)]()
            cupy.cuda.get_current_stream().synchronize()
        count = _repeats(single.seconds[0], repeats, seconds, max_seconds)
        with _energy(cupy, device) as joules:
            found = queued(calls, count, held=single.held)
        if sustain >= _ENERGY_SECONDS:
            told = sustained and done <= _MOST_CALLS_FOR_ENERGY
            return found, sustained[0] / done if told else None
        if sum(found.seconds) < _ENERGY_SECONDS:
            count = math.ceil(_ENERGY_SECONDS / max(float(np.median(found.seconds)), 1e-9))
            if count > _MOST_CALLS_FOR_ENERGY:
                return found, None
            with _energy(cupy, device) as joules:
                queued_seconds(calls, count)
    return found, joules[0] / count if joules else None


def _repeats(single: float, repeats: int, seconds: float, max_seconds: float) -> int:
    if single * _LEAST_REPEATS > max_seconds:
        return 1
    return max(_LEAST_REPEATS, min(repeats, math.ceil(seconds / max(single, 1e-9))))


@contextmanager
def _energy(cupy: Any, device: Device) -> Iterator[list[float]]:
    """A list that holds the joules of the block after it; empty where NVML cannot tell."""
    found: list[float] = []
    read = _energy_counter(cupy, device)
    before = read() if read else None
    yield found
    if read and before is not None:
        found.append(1e-3 * (read() - before))


def _energy_counter(cupy: Any, device: Device) -> Callable[[], int] | None:
    """Millijoules since the driver was loaded; None where NVML cannot tell."""
    try:
        pynvml, handle = nvml_device(cupy, device)
    except NvmlAbsentError:
        return None
    try:
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except pynvml.NVMLError:
        return None
    return lambda: int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))


class NvmlAbsentError(RuntimeError):
    """NVML is not installed or does not know the device."""


def nvml_device(cupy: Any, device: Device) -> tuple[Any, Any]:
    """The module pynvml, initialised, and its handle of the GPU at the same PCI address.

    Raises NvmlAbsentError with the reason where there is none.
    """
    try:
        import pynvml
    except ImportError:
        raise NvmlAbsentError("pynvml (nvidia-ml-py) is not installed") from None
    try:
        pynvml.nvmlInit()
        address = cupy.cuda.Device(device.index).pci_bus_id
        return pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(address.encode())
    except pynvml.NVMLError as error:
        raise NvmlAbsentError(f"NVML does not know the device: {error}") from None


def with_allocations(call: Callable[[], Any], device: Device) -> tuple[Any, int | None]:
    """A call's result, and the most bytes that it and its temporaries took; None on a GPU."""
    if device.backend == "cuda":
        return call(), None
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def rotations(device: Device, bytes_of_inputs: int, allocated: int | None = None) -> int:
    """How many copies of the inputs it takes that none is in the last-level cache at its turn.

    From one turn of a copy to the next every copy is read once, and each call's results and
    temporaries pass through the cache too. Where it is known what a call allocates
    (`with_allocations`), all of this must exceed the cache, so that large inputs are not copied in
    vain; else the inputs alone must exceed it twice. At least 1, and no more than fit in a quarter
    of the device's memory.
    """
    if bytes_of_inputs <= 0:
        return 1
    if allocated is None:
        wanted = 2 * device.cache_bytes // bytes_of_inputs + 1
    else:
        wanted = device.cache_bytes // (bytes_of_inputs + allocated) + 1
    room = device.memory_bytes // _MEMORY_SHARE // bytes_of_inputs
    return max(1, min(wanted, room))
