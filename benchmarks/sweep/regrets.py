"""Regret: the time of the chosen plan over that of the fastest candidate, all timed in turn."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

from argand.runtime.plan import PlanError

from benchmarks.peers import Candidate
from benchmarks.sweep.case import Case, Row
from benchmarks.sweep.in_turn import ROUNDS, Task, prepared, timed_in_turn
from benchmarks.sweep.measuring import calls_of, sets_of

_RIVALS, _FEW_ROUNDS = 5, 3
"""Plans that are timed again beside the chosen one, and rounds that find them."""


@dataclass(frozen=True)
class PlanTimes:
    """Microseconds of the chosen plan and of the fastest, then each plan's, the fastest first."""

    chosen: float
    fastest: float
    found: Sequence[tuple[Any, float]]


def plan_times(case: Case, candidate: Candidate, operands: Sequence[Any]) -> PlanTimes | None:
    """Time a candidate's call and the plans that it could have taken; None where there are none.

    The fastest few are timed again with the call, all in turn, because the least of many times is
    too small by their noise; their times are those later ones.
    """
    sets = sets_of(case, operands)
    inputs = candidate.prepare(*operands)
    calls = calls_of(candidate, sets, inputs)
    tasks: list[tuple[Any, Task]] = []
    for plan in case.plans(candidate, inputs):
        with suppress(PlanError), case.with_plan(plan):  # one that addresses do not allow
            task, _ = prepared(calls)
            tasks.append((plan, replace(task, taking=partial(case.with_plan, plan))))
    if not tasks:
        return None
    times = _microseconds([task for _, task in tasks], _FEW_ROUNDS)
    every = sorted(zip(times, tasks, strict=True), key=lambda pair: pair[0])
    rivals = [task for _, (_, task) in every[:_RIVALS]]
    chosen, *others = _microseconds([prepared(calls)[0], *rivals], ROUNDS)
    found = [(plan, time) for time, (plan, _) in every]
    for place, time in enumerate(others):
        found[place] = found[place][0], time
    return PlanTimes(chosen, min(chosen, *others), sorted(found, key=itemgetter(1)))


def _microseconds(tasks: Sequence[Task], rounds: int) -> list[float]:
    return [1e6 * statistics.median(one.seconds) for one in timed_in_turn(tasks, rounds)]


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
