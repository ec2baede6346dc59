"""The times of all implementations of a workload, measured in turn.

Ours and the peers take a batch of calls each in every round, so that what changes meanwhile (clock,
load of other programs) is in the times of all. For that their operands are in memory together,
those that are equal once. Where they do not fit, those of one type of result are timed in turn, and
at the last each implementation by itself. Models of a GPU's precisions, which allocate the most,
are timed after the others, whose operands are no longer in memory then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from logging import Logger
from typing import Any

import numpy as np
from argand import Device

from workflow.cpu_models import is_model
from workflow.data import Array
from workflow.implementation import Implementation
from workflow.measuring.readings import READINGS, Readings
from workflow.measuring.samplers import Timing
from workflow.measuring.surroundings import Surroundings, watching
from workflow.measuring.timing import REPEATS, measure_coarsely, measure_in_turn, rotations
from workflow.steps.resident import free, moves, upload

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
    found: dict[int, Measured] = {}
    waiting = _by_use(ready, device)
    while waiting:
        places = waiting.pop(0)
        group = [ready[place] for place in places]
        try:
            found |= zip(places, _measured(group, operands, device), strict=True)
        except MemoryError as error:
            if len(group) == 1:
                raise
            free(device)
            parts = _parts(places, [one.implementation for one in group])
            log.warning("timed in %d groups, each in turn: %s", len(parts), error)
            waiting = parts + waiting
    return [found[place] for place in range(len(ready))]


def readings_of(timing: Timing, around: Surroundings) -> Readings:
    """Return times and what the machine did meanwhile, by the columns of a result."""
    found = {**asdict(timing), **asdict(around)}
    return {name: found[name] for name in READINGS if name in found}


def _by_use(ready: Sequence[Ready], device: Device) -> list[list[int]]:
    """Return the places of those whose times are compared, and of models of a GPU's precisions."""
    groups: dict[bool, list[int]] = {False: [], True: []}
    for place, one in enumerate(ready):
        groups[_is_model(one, device)].append(place)
    return [places for places in groups.values() if places]


def _is_model(one: Ready, device: Device) -> bool:
    return is_model(one.implementation.precision.name, device.backend)


def _parts(places: Sequence[int], implementations: Sequence[Implementation]) -> list[list[int]]:
    """Return groups of one type of result; one implementation a group where all have one type."""
    by_type: dict[str, list[int]] = {}
    for place, one in zip(places, implementations, strict=True):
        by_type.setdefault(one.precision.output, []).append(place)
    return list(by_type.values()) if len(by_type) > 1 else [[place] for place in places]


def _shared(ready: Sequence[Ready], operands: Operands) -> list[Operands]:
    """Return the operands of each implementation, equal arrays once in memory.

    What one function makes is made once, so that two casts of large operands are not in memory
    beside each other, to be compared.
    """
    made: dict[Any, Operands] = {}
    known: dict[Any, list[Array]] = {}

    def one(name: str, value: Any) -> Any:
        if not moves(value):
            return value
        others = known.setdefault((name, value.dtype, value.shape, value.strides), [])
        for other in others:
            if other is value or _same_bits(other, value):
                return other
        others.append(value)
        return value

    for each in ready:
        prepare = each.implementation.prepare
        if (key := _recipe(prepare)) not in made:
            made[key] = {name: one(name, value) for name, value in prepare(operands).items()}
    return [made[_recipe(each.implementation.prepare)] for each in ready]


def _recipe(function: Any) -> Any:
    """Return a key that two functions share where they do the same: partial ones have none."""
    if isinstance(function, partial):
        return function.func, function.args, tuple(sorted(function.keywords.items()))
    return function


def _same_bits(x: Array, y: Array) -> bool:
    """Return whether arrays of one type and layout have the same bits, without copies of them."""
    with np.nditer([x, y], ["buffered", "external_loop", "zerosize_ok"]) as chunks:
        return all(a.tobytes() == b.tobytes() for a, b in chunks)


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
        if _is_model(one, device):
            count = 1  # its time decides nothing
        copies[_key(operands)] = max(count, copies.get(_key(operands), 1))
    return copies


def _measured(ready: Sequence[Ready], operands: Operands, device: Device) -> list[Measured]:
    """Return the times of each, over as many copies of its inputs as it takes to leave the cache.

    On a GPU the clock is the card's, as in the benchmarks: what Python takes to make a short call
    would hide what the kernels of two libraries differ in. Raises MemoryError where the operands of
    several take more than their share of the memory.
    """
    group = list(zip(ready, _shared(ready, operands), strict=True))
    copies = _copies(group, device)
    sets = {_key(each): each for _, each in group}
    taken = sum(_size(each) * copies[key] for key, each in sets.items())
    if len(group) > 1 and taken > device.memory_bytes // _SHARE:
        raise MemoryError("operands of all precisions do not fit together")
    resident = {
        key: [upload(each, device, copy=index > 0) for index in range(copies[key])]
        for key, each in sets.items()
    }
    tasks = [
        [partial(one.implementation.compute, inputs) for inputs in resident[_key(each)]]
        for one, each in group
    ]
    with watching(device) as watch:
        if _is_model(ready[0], device):
            timings = measure_coarsely(tasks, watch.sample)
        else:
            timings = measure_in_turn(tasks, device, held=True, observe=watch.sample)
    return [(timing, watch.found) for timing in timings]
