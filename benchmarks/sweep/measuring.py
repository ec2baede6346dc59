"""Checks and times of the candidates of a case in a sweep: quick, for there are thousands."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from argand import Device, Precision
from argand.beam_power.problem import EXACT
from argand.runtime.compile.kernel_digest import kernel_digest
from argand.runtime.measuring.ceilings import real_product
from argand.runtime.measuring.timing import Calls, Queued, queued

from benchmarks.harness.measuring import array_module
from benchmarks.peers import Candidate
from benchmarks.sweep.case import OURS, Assess, Case, Row
from benchmarks.sweep.in_turn import SECONDS, Task, make_before, prepared, timed_in_turn
from workflow.accuracy import Accuracy
from workflow.versions import timestamp, versions

_MIN_CALLS, _MAX_CALLS = 5, 100
"""Calls that are timed one by one: of a CPU, and of what waits for the device itself."""
_SETS = ((4, 1 << 28), (16, 1 << 24))
"""Sets of operands and results that are used in turn, and the bytes that all of them may take.

Calls of a few microseconds take up to 10% more or less by where their operands lie, and 5% by
whether they write one block of memory again and again (an H200), so small ones have many sets."""
_MEMORY = 0.5
"""Part of a device's memory that the operands and results of all candidates may take together."""


@dataclass(frozen=True)
class Measurement:
    """A candidate's row, and what a case's assessment returned, None where there is no result.

    ``task`` is what is yet to be timed, in turn with the others of the case.
    """

    row: Row
    accuracy: Accuracy | int | None
    task: Task | None = None


def measured(
    case: Case, candidates: Sequence[Candidate], operands: Sequence[Any], assess: Assess,
    device: Device, seed: int,
) -> list[Measurement]:  # fmt: skip
    """Compute, check and time candidates on the same sets of operands.

    They are timed in turn, and so are a copy of as many bytes and, where sizes were given, a real
    product of each format of operands. One after another are those of a CPU, those that wait for
    the device, and all whose results have no room beside each other.
    """
    sets = sets_of(case, operands)
    room = (1 + len(candidates)) * len(sets) * case.bytes_moved
    together = device.backend == "cuda" and room <= _MEMORY * device.memory_bytes
    copies = copies_of(case, len(sets), device)
    if not together:
        copy, copies = _seconds(timed(copies, device)), []
    found = [_checked(case, x, sets, assess, device, seed, together) for x in candidates]
    tasks = [one.task for one in found if one.task]
    rates: dict[str, float] = {}
    if together:
        names = {real_format(one.precision) for one in candidates if case.given} - {""}
        reals = {name: real_product(name) for name in sorted(names)}
        yardsticks: list[Calls] = [copies, *([multiply] for multiply, _ in reals.values())]
        beside = [prepared(calls)[0] for calls in yardsticks]
        queues = iter(timed_in_turn([*beside, *tasks]))
        copy = _seconds(next(queues))
        rates = {name: flops / _seconds(next(queues)) for name, (_, flops) in reals.items()}
        found = [_with_times(one, next(queues), case) if one.task else one for one in found]
    return [
        _beside(one, x.precision, 1e6 * copy, rates)
        for one, x in zip(found, candidates, strict=True)
    ]


def _checked(
    case: Case, candidate: Candidate, sets: Sequence[Sequence[Any]], assess: Assess,
    device: Device, seed: int, together: bool,
) -> Measurement:  # fmt: skip
    """Compute and check a candidate, and time it where it is not to be ``together`` with others.

    What cannot be done is the reason of its row.
    """
    row = Row(
        operation=case.operation, shape=case.shape, kind=case.kind,
        precision=candidate.precision.name, implementation=candidate.name, time_us=None,
        host_us=None, of_copy=None, tflops=None, ratio=None, regret=None, error=None,
        verified=False, plan="", reason="", peer_class=case.peer_class(candidate.precision),
        device=device.name, seed=seed,
        kernel_digest=kernel_digest(case.operation) if candidate.name == "argand" else "",
        versions=versions(), timestamp=timestamp(),
    )  # fmt: skip
    try:
        inputs = candidate.prepare(*sets[0])
        accuracy = assess(candidate.result(candidate.compute(*inputs)), candidate)
        found = Measurement(
            replace(row, plan=candidate.chosen(*inputs) or candidate.algorithm), accuracy
        )
        calls = calls_of(candidate, sets, inputs)
        if not together:
            return _with_times(found, timed(calls, device), case)
        task, held = prepared(calls)
        if held:
            return replace(found, task=task)
        return _with_times(found, queued(calls, _count(task.seconds)), case)
    except Exception as error:  # one that breaks must not take the rows of the others with it
        return Measurement(replace(row, reason=f"{type(error).__name__}: {error}"), None)


def _with_times(one: Measurement, queue: Queued, case: Case) -> Measurement:
    seconds = _seconds(queue)
    row = replace(
        one.row, time_us=1e6 * seconds, host_us=1e6 * statistics.median(queue.host_seconds),
        tflops=case.flops / seconds / 1e12 if case.flops else None,
        gbytes_per_s=case.bytes_moved / seconds / 1e9,
    )  # fmt: skip
    return Measurement(row, one.accuracy)


def real_format(precision: Precision) -> str:
    """Return the format of a precision's real products; exact sums are of int8.

    It is empty by moduli, whose real products are of residues.
    """
    if precision.moduli:
        return ""
    return "int8" if precision.name == EXACT.name else precision.operand.name


def _beside(
    one: Measurement, precision: Precision, copy_us: float, rates: Mapping[str, float]
) -> Measurement:
    """Return a measurement beside a copy, and the real product where its rate is known."""
    row, rate = one.row, rates.get(real_format(precision))
    if row.time_us is None:
        return one
    of_real = 1e12 * row.tflops * len(precision.products) / rate if rate and row.tflops else None
    return replace(one, row=replace(row, of_copy=copy_us / row.time_us, of_real=of_real))


def timed(calls: Calls, device: Device) -> Queued:
    """Return the times of calls that are timed alone; a CPU's are the host's too."""
    if device.backend == "cpu":
        make_before(calls)
        found: list[float] = []
        while len(found) < _MIN_CALLS or (len(found) < _MAX_CALLS and sum(found) < SECONDS):
            started = time.perf_counter()
            calls[len(found) % len(calls)]()
            found.append(time.perf_counter() - started)
        return Queued(found, found)
    task, held = prepared(calls)
    return timed_in_turn([task])[0] if held else queued(calls, _count(task.seconds))


def _count(seconds: float) -> int:
    """Return how often a call that takes so long is timed by itself."""
    return int(min(_MAX_CALLS, max(_MIN_CALLS, SECONDS / seconds)))


def _seconds(queue: Queued) -> float:
    return statistics.median(queue.seconds)


def sets_of(case: Case, operands: Sequence[Any]) -> list[Sequence[Any]]:
    """Return the operands and copies of them, as many sets as `_SETS` allows."""
    count = max(1, *(min(most, int(room // case.bytes_moved)) for most, room in _SETS))
    return [operands, *([x.copy() for x in operands] for _ in range(count - 1))]


def calls_of(
    candidate: Candidate, sets: Sequence[Sequence[Any]], inputs: tuple[Any, ...]
) -> list[Callable[[], object]]:
    """Return calls on ``inputs``, made of the first set of operands, and on the other sets.

    Each call keeps its result until it is made again. So a candidate that allocates results writes
    as many of them in turn as one that is given their places.
    """
    others = (candidate.prepare(*operands) for operands in sets[1:])
    return [_keeping(partial(candidate.compute, *mine)) for mine in (inputs, *others)]


def _keeping(call: Callable[[], object]) -> Callable[[], object]:
    """Return the call with its last result kept."""
    kept: object = None

    def keeping() -> object:
        nonlocal kept
        kept = call()
        return kept

    return keeping


def copies_of(case: Case, sets: int, device: Device) -> list[Callable[[], object]]:
    """Return copies of as many bytes as a call of the case moves, the yardstick of its memory.

    As many arrays are copied in turn as the calls have, so caches hold as much of both.
    """
    arrays, size = array_module(device), max(1, int(case.bytes_moved / 2))
    pairs = -(-sets // 2) if case.in_place else sets
    made = [(arrays.ones(size, "uint8"), arrays.empty(size, "uint8")) for _ in range(pairs)]
    return [partial(arrays.copyto, y, x) for x, y in made]


def with_accuracy(measured: Sequence[Measurement], later: Sequence[Accuracy] = ()) -> list[Row]:
    """Return the rows of one case with their accuracy, which may be one of those ``later``."""
    found = []
    for each in measured:
        row, accuracy = each.row, each.accuracy
        one = later[accuracy] if isinstance(accuracy, int) else accuracy
        if one is not None:
            row = replace(
                row, error=one.rel_frobenius, over_bound=_over_bound(one), verified=one.verified,
                reason=one.reason,
                measures=" ".join(f"{name}={value}" for name, value in one.measures.items()),
            )  # fmt: skip
        found.append(row)
    return found


def _over_bound(one: Accuracy) -> float | None:
    """Return the error over its bound; at fp64, where an accuracy has no ratio, too."""
    if one.ratio:
        return 1 / one.ratio
    if one.rel_frobenius == 0:
        return 0.0
    return one.rel_frobenius / one.bound if one.bound and one.rel_frobenius is not None else None


def with_ratios(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one case, each with the best verified peer's time over its own."""
    found = []
    for row in rows:
        times = [
            peer.time_us for peer in rows
            if peer.implementation not in OURS and peer.verified
            and peer.time_us is not None and peer.peer_class == row.peer_class
        ]  # fmt: skip
        ratio = min(times) / row.time_us if times and row.time_us is not None else None
        found.append(replace(row, ratio=ratio))
    return found
