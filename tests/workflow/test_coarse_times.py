"""Times that decide nothing: taken beside the others, in as few rounds as have quantiles."""

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
from workflow.measuring.spread import FEWEST
from workflow.measuring.timing import COARSE, Limits, measure_in_turn
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


@pytest.mark.parametrize("coarse", [(), (1,)])
def test_the_limits_are_those_of_the_others(coarse: tuple[int, ...]) -> None:
    machine = Machine()
    tasks = [machine.call("fine", uneven(0.1)), machine.call("slow", uneven(10.0))]
    fine, slow = measure_in_turn(
        tasks, cpu(), Limits(repeats=20, seconds=2.95, warmup=0, max_seconds=1e9),
        clock=machine.clock, coarse=coarse,
    )  # fmt: skip
    assert slow.iterations == (COARSE if coarse else FEWEST)
    # 0.15 s on average; with the slow one all time is spent after six rounds.
    assert fine.iterations == (20 if coarse else FEWEST)
    assert (slow.time_us_low is None) == bool(coarse)
    assert slow.time_us_p20 <= slow.time_us_p50 <= slow.time_us_p80
    beside = COARSE if coarse else FEWEST
    first = machine.called[: 2 * beside]
    assert first.count("fine") == first.count("slow") == beside


def test_what_is_coarse_alone_is_measured_as_ever() -> None:
    machine = Machine()
    (found,) = measure_in_turn(
        [machine.call("x", uneven(0.1))], cpu(), Limits(repeats=20, seconds=2.95, warmup=0),
        clock=machine.clock, coarse=(0,),
    )  # fmt: skip
    assert found.iterations == 20


def test_models_of_a_gpu_are_neither_settled_nor_unsettled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def measure(tasks: Any, device: Any, *, coarse: Any, **_: Any) -> list[Timing]:
        asked.append(set(coarse))
        return [Timing(1.0, 1.0, 1.0, 6, settled=False) for _ in tasks]

    monkeypatch.setattr(in_turn, "measure_in_turn", measure)
    ready = [
        Ready(Implementation("argand", row, "", lambda given: given["x"], dict), 0)
        for row in PRECISIONS.values()
    ]
    found = times_in_turn(ready, {"x": np.ones(3)}, cpu(), logging.getLogger("t"))
    settled = dict(zip(PRECISIONS, (timing.settled for timing, _ in found), strict=True))
    assert {name for name, value in settled.items() if value is False} == {"fp64", "fp32"}
    assert {value for name, value in settled.items() if name not in ("fp64", "fp32")} == {None}
    assert asked == [{place for place, name in enumerate(PRECISIONS) if settled[name] is None}]
