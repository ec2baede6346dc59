"""The times of calls, measured in turn, and their energy. Needs NumPy; on a GPU CuPy and NVML."""

from __future__ import annotations

import itertools
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from argand import Device

from workflow.measuring.samplers import Call, Clock, CpuSampler, GpuSampler, Sampler
from workflow.measuring.samplers import Timing as Timing
from workflow.measuring.spread import MIN_SAMPLES, spread_of

REPEATS = 20
"""Batches that are enough where their times have settled."""
SECONDS = 0.5
"""Most seconds for which a computation is repeated where its times do not settle."""
COARSE = 3
"""Batches of a computation whose time decides nothing: the fewest whose quantiles say more."""
_MEMORY_SHARE = 4
"""Copies of the inputs take at most this fraction (one in) of a device's memory."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When the rounds of a measurement end, and what goes before them.

    Attributes:
        repeats: rounds that are enough where the times have settled.
        seconds: the time for each computation, after which the rounds end in any case.
        warmup: calls before the clock starts (compilation, first touches, clocks).
        sustain: seconds of further calls before the clock starts, after which a card that throttles
            has done so; where they suffice, the energy is measured over them.
        max_seconds: the most time for each computation: where `MIN_SAMPLES` rounds take longer,
            there are fewer, and no interval.

    Raises ValueError where one is not positive, or ``warmup`` or ``sustain`` negative.
    """

    repeats: int = field(default_factory=lambda: REPEATS)
    seconds: float = field(default_factory=lambda: SECONDS)
    warmup: int = 1
    sustain: float = 0.0
    max_seconds: float = 60.0

    def __post_init__(self) -> None:
        for name in ("repeats", "seconds", "max_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("warmup", "sustain"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")


def measure(
    calls: Sequence[Call], device: Device, limits: Limits | None = None, *, held: bool = False
) -> Timing:
    """Time a computation by itself; see `measure_in_turn`."""
    return measure_in_turn([calls], device, limits, held=held)[0]


def measure_in_turn(
    tasks: Sequence[Sequence[Call]],
    device: Device,
    limits: Limits | None = None,
    *,
    held: bool = False,
    observe: Callable[[], object] = lambda: None,
    clock: Clock = time.perf_counter,
) -> list[Timing]:
    """Time computations in turn, a batch of each in every round, until all of them have settled.

    So a clock that drifts, or a program that comes and goes, is in the times of all of them. The
    order changes from round to round. A round follows another until each computation has
    ``limits.repeats`` batches and an interval that is narrow (`workflow.measuring.spread`), or
    until all together have taken ``limits.seconds`` each; then there are `MIN_SAMPLES` rounds or
    more, as many as an interval takes.

    Args:
        tasks: for each computation the same call over different copies of its inputs, used in turn,
            so that no copy is still in the cache when its turn comes (`rotations` says how many it
            takes).
        device: where they run. On a GPU the clock is CUDA events around each call, without waiting
            in between, and no batch is shortest of several; on the CPU it is ``clock``.
        limits: the limits of rounds and seconds; the defaults of `Limits` where not given.
        held: on a GPU, have the device begin only when calls are queued (`queued` of
            `argand.runtime.measuring.timing`).
        observe: is called after each round.
        clock: seconds, on the CPU.

    Raises ValueError where there is nothing to call.
    """
    limits = limits or Limits()
    if not tasks or not all(tasks):
        raise ValueError("calls must hold at least one, got none")
    turn = itertools.count()
    with _current(device):
        samplers: list[Sampler] = [
            GpuSampler(calls, turn, device, limits.warmup, limits.sustain, held)
            if device.backend == "cuda"
            else CpuSampler(calls, turn, clock, limits.warmup, limits.sustain)
            for calls in tasks
        ]
        _rounds(samplers, limits, observe)
        return [sampler.timing() for sampler in samplers]


def measure_coarsely(
    tasks: Sequence[Sequence[Call]],
    observe: Callable[[], object],
    clock: Clock = time.perf_counter,
) -> list[Timing]:
    """Time computations on the CPU that have been called before and whose times decide nothing.

    Each has `COARSE` batches, and no interval. The arguments are those of `measure_in_turn`.
    """
    turn = itertools.count()
    samplers = [CpuSampler(calls, turn, clock, warmup=0, sustain=0.0) for calls in tasks]
    for _ in range(COARSE):
        for sampler in samplers:
            sampler.sample()
        observe()
    return [replace(sampler.timing(), settled=None) for sampler in samplers]


def _rounds(samplers: Sequence[Sampler], limits: Limits, observe: Callable[[], object]) -> None:
    """Sample each computation once a round, until `Limits` end it."""
    count = len(samplers)
    order = list(samplers)
    shuffle = random.Random(count).shuffle
    while True:
        for sampler in order:
            sampler.sample()
        # In one order, times would keep step with what comes back as often as a round does.
        shuffle(order)
        observe()
        spent = sum(sampler.spent for sampler in samplers)
        done = min(len(sampler.seconds) for sampler in samplers)
        if done < MIN_SAMPLES:
            if spent / done * MIN_SAMPLES > limits.max_seconds * count:
                return
            continue
        if spent >= limits.seconds * count or (
            done >= limits.repeats and all(spread_of(one.seconds).settled for one in samplers)
        ):
            return


@contextmanager
def _current(device: Device) -> Iterator[None]:
    """Make the device CuPy's current one, where it is a GPU."""
    if device.backend != "cuda":
        yield
        return
    import cupy

    with cupy.cuda.Device(device.index):
        yield


def with_allocations(call: Callable[[], Any], device: Device) -> tuple[Any, int | None]:
    """Return a call's result, and the most bytes that it and its temporaries took.

    The bytes are None on a GPU.
    """
    if device.backend == "cuda":
        return call(), None
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def rotations(device: Device, bytes_of_inputs: int, allocated: int | None = None) -> int:
    """Return how many copies of the inputs keep each out of the last-level cache at its turn.

    From one turn of a copy to the next every copy is read once, and each call's results and
    temporaries pass through the cache too. Where it is known what a call allocates
    (`with_allocations`), all of this must exceed the cache, so that large inputs are not copied in
    vain; else the inputs alone must exceed it twice. At least 1, and no more than fit in a quarter
    of the device's memory.
    """
    if bytes_of_inputs <= 0:
        return 1
    if allocated is None:
        copies = 2 * device.cache_bytes // bytes_of_inputs + 1
    else:
        copies = device.cache_bytes // (bytes_of_inputs + allocated) + 1
    room = device.memory_bytes // _MEMORY_SHARE // bytes_of_inputs
    return max(1, min(copies, room))
