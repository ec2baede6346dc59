"""Short calls of a case, timed in turn.

One candidate after another sees other clocks: two medians of 100 calls of 5 us, which take half a
millisecond, differ by up to 5% where both are of the same call, and the later one is 2% less on
average at softmax. In turn they differ by up to 3% and by nothing on average (an H200).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from argand.runtime.timing import Calls, Queued

from benchmarks.sweep.case import Row
from benchmarks.sweep.rows_of_calls import queued_rows
from workflow.accuracy import Accuracy

SHORT_SECONDS = 20e-6
"""Calls shorter than this are timed again, in turn with the others of their case."""
_NEAR = 1.25
"""Times of a class over its least beyond which a candidate decides no ratio near 1."""
_ROUNDS, _CALLS_OF_A_ROUND = 12, 16
"""A row of calls in each round, one on each of the sets of operands that short calls have, or on
some as often."""


@dataclass(frozen=True)
class Measurement:
    """A candidate's row, and what a case's assessment returned, None where there is no result.

    ``calls`` are those of a candidate that is to be timed again, else empty.
    """

    row: Row
    accuracy: Accuracy | int | None
    calls: Calls = ()


def timed_in_turn(
    measured: Sequence[Measurement], measure: Callable[..., Queued] = queued_rows
) -> list[Measurement]:
    """Return the measurements of a case, with the times of short calls near the fastest taken anew.

    A row of each follows in every round, and every second round goes the other way, so that a
    drift is in the times of all.
    """
    least: dict[str, float] = {}
    for one in measured:
        least[one.row.peer_class] = min(least.get(one.row.peer_class, math.inf), _time_us(one))
    short = [
        place for place, one in enumerate(measured)
        if one.calls and _time_us(one) <= _NEAR * least[one.row.peer_class]
    ]  # fmt: skip
    seconds: dict[int, list[float]] = {place: [] for place in short}
    for number in range(_ROUNDS):
        for place in short if number % 2 else reversed(short):
            batch = measure(measured[place].calls, 1, _CALLS_OF_A_ROUND)
            seconds[place] += batch.seconds
    return [
        _with_time(one, 1e6 * statistics.median(seconds[place]))
        if place in seconds
        else replace(one, calls=())
        for place, one in enumerate(measured)
    ]


def _time_us(measured: Measurement) -> float:
    return math.inf if measured.row.time_us is None else measured.row.time_us


def _with_time(measured: Measurement, time_us: float) -> Measurement:
    row, faster = measured.row, _time_us(measured) / time_us
    row = replace(
        row, time_us=time_us, of_copy=None if row.of_copy is None else faster * row.of_copy,
        tflops=None if row.tflops is None else faster * row.tflops,
    )  # fmt: skip
    return Measurement(row, measured.accuracy)
