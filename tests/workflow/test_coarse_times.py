"""Times that decide nothing: taken after the others, in as few rounds as have quantiles."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu

from workflow.implementation import Implementation
from workflow.measuring.samplers import Timing
from workflow.measuring.timing import COARSE, measure_coarsely
from workflow.steps import in_turn
from workflow.steps.in_turn import Ready, times_in_turn


class Machine:
    """A clock that calls move: each takes the next of its times."""

    def __init__(self) -> None:
        self.now = 0.0
        self.called: list[str] = []

    def call(self, name: str, seconds: Iterator[float]) -> list[Any]:
        def run() -> None:
            self.called.append(name)
            self.now += next(seconds)

        return [run]

    def clock(self) -> float:
        return self.now


def uneven(times: float) -> Iterator[float]:
    return itertools.cycle([times, 2 * times])


def test_each_has_as_many_batches_as_have_quantiles() -> None:
    machine, seen = Machine(), []
    tasks = [machine.call("a", uneven(0.1)), machine.call("b", uneven(10.0))]
    found = measure_coarsely(tasks, lambda: seen.append(len(machine.called)), machine.clock)
    assert machine.called == ["a", "b"] * COARSE
    assert seen == [2, 4, 6]
    for timing in found:
        assert (timing.iterations, timing.time_us_low, timing.settled) == (COARSE, None, None)
        assert timing.time_us_p20 <= timing.time_us_p50 <= timing.time_us_p80
    assert found[1].time_us_p80 > 1e7 > found[0].time_us_p80


def test_models_of_a_gpu_are_timed_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[tuple[str, int]] = []

    def measure(tasks: Any, *_: Any, **__: Any) -> list[Timing]:
        groups.append(("in turn", len(tasks)))
        return [Timing(1.0, 1.0, 1.0, 6, settled=False) for _ in tasks]

    def measured_coarsely(tasks: Any, *_: Any) -> list[Timing]:
        groups.append(("coarsely", len(tasks)))
        return [Timing(1.0, 1.0, 1.0, COARSE, settled=None) for _ in tasks]

    monkeypatch.setattr(in_turn, "measure_in_turn", measure)
    monkeypatch.setattr(in_turn, "measure_coarsely", measured_coarsely)
    ready = [
        Ready(Implementation("argand", row, "", lambda given: given["x"], dict), 0)
        for row in PRECISIONS.values()
    ]
    found = times_in_turn(ready, {"x": np.ones(3)}, cpu(), logging.getLogger("t"))
    settled = dict(zip(PRECISIONS, (timing.settled for timing, _ in found), strict=True))
    assert {name for name, value in settled.items() if value is False} == {"fp64", "fp32"}
    assert {value for name, value in settled.items() if name not in ("fp64", "fp32")} == {None}
    assert groups == [("in turn", 2), ("coarsely", len(PRECISIONS) - 2)]
