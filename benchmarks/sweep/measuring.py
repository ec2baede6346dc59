"""How a sweep times and checks one candidate: quickly, because there are thousands of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from argand import Device
from argand.runtime.kernel_digest import kernel_digest
from argand.runtime.plan import PlanError
from argand.runtime.timing import Queued, queued

from benchmarks.harness.measuring import array_module
from benchmarks.peers import Candidate
from benchmarks.sweep.case import Assess, Case, Row
from benchmarks.sweep.in_turn import SHORT_SECONDS, Measurement
from benchmarks.sweep.rows_of_calls import queued_rows, row_length
from workflow.accuracy import Accuracy
from workflow.versions import timestamp, versions

_SECONDS = 0.02
"""Spent on the calls of a candidate, where `_FEWEST` do not take longer."""
_FEWEST, _MOST = 5, 100
_CALLS_BEFORE = 3
"""Calls on each set of operands before the clock starts: libraries and ours prepare graphs then,
for which the driver may wait for the device."""
_SETS = ((4, 1 << 28), (16, 1 << 24))
"""Sets of operands and results that are used in turn, and the bytes that all of them may take.

Calls of a few microseconds take up to 10% more or less by where their operands lie, and 5% by
whether they write one block of memory again and again (an H200), so small ones have many sets."""
_RIVALS, _REPEATS = 3, 3
"""Plans that are timed again beside the chosen one, and how often."""


@dataclass(frozen=True)
class PlanTimes:
    """Microseconds of the chosen plan and of the fastest, then each plan's, the fastest first."""

    chosen: float
    fastest: float
    found: Sequence[tuple[Any, float]]


class Copies:
    """Times of copies within the device's memory, the yardstick of what memory allows."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._rates: dict[str, float] = {}

    def seconds(self, moved: float, pairs: int = 1) -> float:
        """Return the seconds in which a copy reads and writes ``moved`` bytes together.

        ``pairs`` of arrays are copied in turn, so that caches hold as much of them as of what is
        compared. Copies of sizes with the same two leading digits are timed once.
        """
        key = f"{moved:.1e} {pairs}"
        if key not in self._rates:
            arrays = array_module(self._device)
            size = max(1, int(moved / 2))
            made = [(arrays.ones(size, "uint8"), arrays.empty(size, "uint8")) for _ in range(pairs)]
            copies = [lambda x=x, y=y: arrays.copyto(y, x) for x, y in made]
            taken, _ = timed(copies, self._device)
            self._rates[key] = 2 * size / taken
        return moved / self._rates[key]


def timed(calls: Sequence[Callable[[], object]], device: Device) -> tuple[float, float]:
    """Return the median seconds of a call on the device, in rows of them, and of the host."""
    found = _queue(calls, device)
    return statistics.median(found.seconds), statistics.median(found.host_seconds)


def _queue(calls: Sequence[Callable[[], object]], device: Device) -> Queued:
    """Return the times of calls in rows; a CPU's are not held, and the host's are the same."""
    for _ in range(_CALLS_BEFORE):
        for call in calls:
            call()
    if device.backend == "cpu":
        found: list[float] = []
        while len(found) < _FEWEST or (len(found) < _MOST and sum(found) < _SECONDS):
            started = time.perf_counter()
            calls[len(found) % len(calls)]()
            found.append(time.perf_counter() - started)
        return Queued(found, found)
    # Held, because nothing of the host's time is to decide how long a row is: while results are
    # checked it may be 20 ms.
    one = queued(calls, 1, held=True)
    first = one.seconds[0]
    if first < _SECONDS:
        few = queued(calls, _FEWEST, held=True)
        first = statistics.median(few.seconds)
        if not (one.held or few.held):
            # Every call waits for the device, and each further hold would take half a second.
            return queued(calls, _count(first))
    found_queue = _rows_of(calls, first)
    taken = statistics.median(found_queue.seconds)
    if row_length(first) == 1 < row_length(taken):  # a host that is busy for long ends the hold
        found_queue = _rows_of(calls, first := taken)
    # One of the calls may have waited, perhaps only this once.
    return found_queue if found_queue.held else _rows_of(calls, first)


def _count(seconds: float) -> int:
    """Return how often a call that takes so long is timed."""
    return int(min(_MOST, max(_FEWEST, _SECONDS / seconds)))


def _rows_of(calls: Sequence[Callable[[], object]], first: float) -> Queued:
    """Return the times of calls that took ``first`` seconds before: of short ones in rows."""
    count, length = _count(first), row_length(first)
    if length > 1:
        return queued_rows(calls, -(-count // length), length)
    return queued(calls, count, held=True)


def row_of(
    case: Case, candidate: Candidate, operands: Sequence[Any], assess: Assess, copies: Copies,
    device: Device, seed: int,
) -> Measurement:  # fmt: skip
    """Compute, check and time a candidate; a row with the reason where that cannot be done."""
    empty = Row(
        operation=case.operation, shape=case.shape, kind=case.kind,
        precision=candidate.precision.name, implementation=candidate.name, time_us=None,
        host_us=None, of_copy=None, tflops=None, ratio=None, regret=None, error=None,
        verified=False, plan="", reason="", peer_class=case.peer_class(candidate.precision),
        device=device.name, seed=seed,
        kernel_digest=kernel_digest(case.operation) if candidate.name == "argand" else "",
        versions=versions(), timestamp=timestamp(),
    )  # fmt: skip
    try:
        inputs = candidate.prepare(*operands)
        accuracy = assess(candidate.result(candidate.compute(*inputs)), candidate)
        plan = candidate.chosen(*inputs)
        calls = calls_of(case, candidate, operands, inputs)
        queue = _queue(calls, device)
        seconds = statistics.median(queue.seconds)
        pairs = -(-len(calls) // 2) if case.in_place else len(calls)
    except Exception as error:  # one that breaks must not take the rows of the others with it
        return Measurement(replace(empty, reason=f"{type(error).__name__}: {error}"), None)
    row = replace(
        empty, time_us=1e6 * seconds, host_us=1e6 * statistics.median(queue.host_seconds),
        plan=plan or candidate.algorithm,
        of_copy=copies.seconds(case.bytes_moved, pairs) / seconds,
        tflops=case.flops / seconds / 1e12 if case.flops else None,
    )  # fmt: skip
    return Measurement(row, accuracy, calls if queue.held and seconds < SHORT_SECONDS else ())


def calls_of(
    case: Case, candidate: Candidate, operands: Sequence[Any], inputs: tuple[Any, ...]
) -> list[Callable[[], object]]:
    """Return calls on ``inputs``, made of the operands, and on copies of these, by `_SETS`.

    Each call keeps its result until it is made again. So a candidate that allocates results writes
    as many of them in turn as one that is given their places.
    """
    count = max(min(most, int(room // case.bytes_moved)) for most, room in _SETS)
    copies = (candidate.prepare(*(x.copy() for x in operands)) for _ in range(count - 1))
    return [_keeping(partial(candidate.compute, *mine)) for mine in (inputs, *copies)]


def _keeping(call: Callable[[], object]) -> Callable[[], object]:
    """Return the call with its last result kept."""
    kept: object = None

    def keeping() -> object:
        nonlocal kept
        kept = call()
        return kept

    return keeping


def with_accuracy(measured: Sequence[Measurement], later: Sequence[Accuracy] = ()) -> list[Row]:
    """Return the rows of one case with their accuracy, which may be one of those ``later``."""
    found = []
    for each in measured:
        row, accuracy = each.row, each.accuracy
        one = later[accuracy] if isinstance(accuracy, int) else accuracy
        if one is not None:
            row = replace(row, error=one.rel_frobenius, verified=one.verified, reason=one.reason)
        found.append(row)
    return found


def with_ratios(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one case, each with the best verified peer's time over its own."""
    found = []
    for row in rows:
        times = [
            peer.time_us for peer in rows
            if peer.implementation not in ("argand", "plan") and peer.verified
            and peer.time_us is not None and peer.peer_class == row.peer_class
        ]  # fmt: skip
        ratio = min(times) / row.time_us if times and row.time_us is not None else None
        found.append(replace(row, ratio=ratio))
    return found


def plan_times(
    case: Case, candidate: Candidate, operands: Sequence[Any], device: Device
) -> PlanTimes | None:
    """Time a candidate's call and the plans that it could have taken; None where there are none.

    The fastest few are timed again in turn with the call, because the least of many times is too
    small by their noise.
    """
    inputs = candidate.prepare(*operands)
    calls = calls_of(case, candidate, operands, inputs)

    def microseconds(plan: Any) -> float:
        with nullcontext() if plan is None else case.with_plan(plan):
            return 1e6 * timed(calls, device)[0]

    plans = case.plans(candidate, inputs)
    if not plans:
        return None
    found = [(plan, time) for plan in plans if (time := _unless_refused(microseconds, plan))]
    if not found:
        return None
    found.sort(key=lambda pair: pair[1])
    again = [None, *(plan for plan, _ in found[:_RIVALS])]
    repeats = [[microseconds(plan) for plan in again] for _ in range(_REPEATS)]
    chosen, *rivals = (statistics.median(times) for times in zip(*repeats, strict=True))
    return PlanTimes(chosen, min(chosen, *rivals), found)


def _unless_refused(microseconds: Callable[[Any], float], plan: Any) -> float | None:
    with suppress(PlanError):  # a plan that the operands' addresses do not allow
        return microseconds(plan)
    return None


def plan_rows(case: Case, mine: Row, plans: PlanTimes | None) -> list[Row]:
    """Return a row of ours with its regret, and one of every candidate plan that was timed."""
    if mine.time_us is None or plans is None:
        return [mine]
    return [
        replace(mine, regret=plans.chosen / plans.fastest),
        *(
            replace(
                mine, implementation="plan", time_us=time, host_us=None, of_copy=None,
                tflops=case.flops / time / 1e6 if case.flops else None, error=None,
                verified=False, plan=str(getattr(plan, "name", plan)), ratio=None,
                reason="not checked",
            )
            for plan, time in plans.found
        ),
    ]  # fmt: skip
