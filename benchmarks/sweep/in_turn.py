"""Calls of a case, timed in turn.

What is timed one after another sees other clocks, and whatever else goes on in one of them is in
the time of one call alone. So a row of each call follows in every round, and the median of a call's
rows counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from argand.runtime.measuring.timing import Calls, Queued, queued

from benchmarks.sweep.rows_of_calls import queued_rows, row_length

ROUNDS, _MIN_ROUNDS = 12, 5
"""Rows of a call, and of one that takes so long that `SECONDS` do not suffice for all."""
SECONDS = 0.02
_CALLS_BEFORE = 3
"""Calls on each set of operands before the clock starts: libraries and ours prepare graphs then,
for which the driver may wait for the device."""
_FIRST = 5
"""Calls whose median says how long a row is."""


@dataclass(frozen=True)
class Task:
    """Calls of one implementation, about how long each takes, and a context to make them in.

    Calls are prepared again whenever they come to a context.
    """

    calls: Calls
    seconds: float
    taking: Callable[[], AbstractContextManager[object]] | None = None


def prepared(calls: Calls) -> tuple[Task, bool]:
    """Make calls until all is prepared; return them with about their time, and whether it is held.

    It is held, because nothing of the host's time is to decide how long a row is: while results
    are checked it may be 20 ms. Not held is that of calls which wait for the device themselves.
    """
    make_before(calls)
    found = _held(calls, 1)
    if found.held and found.seconds[0] < SECONDS:
        found = _held(calls, _FIRST)
    return Task(calls, statistics.median(found.seconds)), found.held


def _held(calls: Calls, count: int) -> Queued:
    """Time calls behind a held stream, once more where a call waited for the device.

    That may be this once: the host was busy for longer than a stream is held, or the driver made
    room for a graph.
    """
    found = queued(calls, count, held=True)
    return found if found.held else queued(calls, count, held=True)


def make_before(calls: Calls) -> None:
    """Make calls before the clock starts, so that all is prepared."""
    for _ in range(_CALLS_BEFORE):
        for call in calls:
            call()


def timed_in_turn(
    tasks: Sequence[Task], rounds: int = ROUNDS, measure: Callable[..., Queued] = queued_rows
) -> list[Queued]:
    """Return the times of each task's rows; every second round goes the other way.

    So a drift is in the times of all. A task of fewer rounds is in some that lie apart. A first
    time that was too long, because the host was busy, makes the first row alone too short.
    """
    found: list[list[Queued]] = [[] for _ in tasks]
    least = [task.seconds for task in tasks]
    for number in range(rounds):
        places = range(len(tasks))
        for place in places if number % 2 else reversed(places):
            if _is_due(number, rounds, least[place]):
                row = _row(tasks[place], number, least[place], measure)
                found[place].append(row)
                least[place] = min(least[place], *row.seconds)
    return [_joined(rows) for rows in found]


def _is_due(number: int, rounds: int, seconds: float) -> bool:
    """Return whether a call that takes so long has a row in a round."""
    mine = int(min(rounds, max(_MIN_ROUNDS, SECONDS / seconds)))
    return (number + 1) * mine // rounds > number * mine // rounds


def _row(task: Task, number: int, seconds: float, measure: Callable[..., Queued]) -> Queued:
    """Return the times of a row, once more where a call waited for the device."""
    length = row_length(seconds)
    calls = _from(task.calls, number * length)
    with task.taking() if task.taking else nullcontext():
        if task.taking:
            make_before(calls)
        found = measure(calls, 1, length)
        return found if found.held else measure(calls, 1, length)


def _from(calls: Calls, start: int) -> Calls:
    """Return the calls from one on, so that short rows come to all sets of operands."""
    start %= len(calls)
    return [*calls[start:], *calls[:start]]


def _joined(rows: Sequence[Queued]) -> Queued:
    """Return the times of rows: where some are held, of these alone.

    A call that waits for the device, perhaps because the driver makes room for a graph, has the
    host's time in the others.
    """
    held = [row for row in rows if row.held]
    taken = held or rows
    return Queued(
        [x for row in taken for x in row.seconds], [x for row in taken for x in row.host_seconds],
        bool(held),
    )  # fmt: skip
