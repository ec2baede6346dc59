"""The times of all implementations of a workload, measured in turn.

Ours and the peers take a batch of calls each in every round, so that what changes meanwhile (clock,
load of other programs) is in the times of all. For that their operands are in memory together,
those that are equal once. Where they do not fit, those of one type of result are timed in turn, and
at the last each implementation by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from logging import Logger
from typing import Any

import numpy as np
from argand import Device

from workflow.cpu_models import is_model
from workflow.data import Array
from workflow.implementation import Implementation
from workflow.measurements import READINGS
from workflow.measuring.samplers import Timing
from workflow.measuring.surroundings import Surroundings, watching
from workflow.measuring.timing import REPEATS, measure_in_turn, rotations
from workflow.steps.resident import free, moves, upload
from workflow.storage.datasets import Result

_SHARE = 3
"""Operands that are in memory together take at most this fraction (one in) of it: the result and
the workspace of whatever computes take as much again."""


@dataclass(frozen=True)
class Ready:
    """An implementation that has computed its result once, and what that allocated, if known."""

    implementation: Implementation
    allocated: int | None


Measured = tuple[Timing, Surroundings]
Operands = Mapping[str, Array]


def times_in_turn(
    ready: Sequence[Ready], operands: Operands, device: Device, log: Logger
) -> list[Measured]:
    """Return the times of each, and what the machine did meanwhile.

    Args:
        ready: what is timed; each has been called before.
        operands: as they were staged.
        device: where; its ``memory_bytes`` are what the operands may take a part of.
        log: names what is not timed in turn.

    Raises MemoryError where the operands of one alone do not fit.
    """
    prepared = _shared(ready, operands)
    jobs = list(zip(ready, prepared, strict=True))
    found: dict[int, Measured] = {}
    waiting = [list(range(len(jobs)))] if jobs else []
    while waiting:
        places = waiting.pop(0)
        group = [jobs[place] for place in places]
        try:
            if len(group) > 1 and _bytes(group, device) > device.memory_bytes // _SHARE:
                raise MemoryError("operands of all precisions do not fit together")
            found |= zip(places, _measured(group, device), strict=True)
        except MemoryError as error:
            if len(group) == 1:
                raise
            free(device)
            parts = _parts(places, [one.implementation for one, _ in group])
            log.warning("timed in %d groups, each in turn: %s", len(parts), error)
            waiting = parts + waiting
    return [found[place] for place in range(len(jobs))]


def with_times(result: Result, timing: Timing, around: Surroundings) -> Result:
    """Return the result with its times and what the machine did meanwhile."""
    found = {**asdict(timing), **asdict(around)}
    return replace(result, **{name: found[name] for name in READINGS if name in found})


def _parts(places: Sequence[int], implementations: Sequence[Implementation]) -> list[list[int]]:
    """Return groups of one type of result; one implementation a group where all have one type."""
    by_type: dict[str, list[int]] = {}
    for place, one in zip(places, implementations, strict=True):
        by_type.setdefault(one.precision.output, []).append(place)
    return list(by_type.values()) if len(by_type) > 1 else [[place] for place in places]


def _shared(ready: Sequence[Ready], operands: Operands) -> list[Operands]:
    """Return the operands of each implementation, equal arrays once in memory."""
    known: dict[tuple[str, str, tuple[int, ...]], list[Array]] = {}

    def one(name: str, value: Any) -> Any:
        if not moves(value):
            return value
        others = known.setdefault((name, value.dtype.str, value.shape), [])
        for other in others:
            if other is value or np.array_equal(other, value, equal_nan=True):
                return other
        others.append(value)
        return value

    return [
        {name: one(name, value) for name, value in each.implementation.prepare(operands).items()}
        for each in ready
    ]


def _key(operands: Operands) -> tuple[tuple[str, int], ...]:
    return tuple((name, id(value)) for name, value in operands.items())


def _size(operands: Operands) -> int:
    return sum(value.nbytes for value in operands.values() if moves(value))


def _copies(group: Sequence[tuple[Ready, Operands]], device: Device) -> dict[Any, int]:
    """Return how many copies of each set of operands it takes that none is still in the cache."""
    copies: dict[Any, int] = {}
    for one, operands in group:
        count = rotations(device, _size(operands), one.allocated)
        if device.backend == "cpu":
            count = min(count, REPEATS)  # enough; a GPU's energy takes further calls
        copies[_key(operands)] = max(count, copies.get(_key(operands), 1))
    return copies


def _bytes(group: Sequence[tuple[Ready, Operands]], device: Device) -> int:
    sizes = {_key(operands): _size(operands) for _, operands in group}
    copies = _copies(group, device)
    return sum(size * copies[key] for key, size in sizes.items())


def _measured(group: Sequence[tuple[Ready, Operands]], device: Device) -> list[Measured]:
    """Return the times of each, over as many copies of its inputs as it takes to leave the cache.

    On a GPU the clock is the card's, as in the benchmarks: what Python takes to make a short call
    would hide what the kernels of two libraries differ in.
    """
    copies = _copies(group, device)
    resident: dict[Any, list[Mapping[str, Any]]] = {}
    for _, operands in group:
        key = _key(operands)
        if key not in resident:
            count = copies[key]
            resident[key] = [upload(operands, device, copy=index > 0) for index in range(count)]
    tasks = [
        [partial(one.implementation.compute, inputs) for inputs in resident[_key(operands)]]
        for one, operands in group
    ]
    coarse = {
        place
        for place, (one, _) in enumerate(group)
        if is_model(one.implementation.precision.name, device.backend)
    }
    with watching(device) as watch:
        timings = measure_in_turn(tasks, device, held=True, observe=watch.sample, coarse=coarse)
    return [
        (replace(timing, settled=None) if place in coarse else timing, watch.found)
        for place, timing in enumerate(timings)
    ]
