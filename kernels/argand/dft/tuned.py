"""The table of measured choices of transforms: which plan, or cuFFT, was the fastest on a device.

`argand.tune_dft` fills it, or ``python -m argand tune dft 4096x1018``. What is not in it takes
the choice of `dft.heuristics`, whose thresholds between ours and cuFFT were measured on an H200.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from argand.device import Arch, Device
from argand.dft.heuristics import Choice, choose
from argand.dft.legality import check_dft_plan, wide_fits
from argand.dft.plan import Plan
from argand.dft.plan_words import plan_in, plan_words
from argand.dft.problem import DftProblem
from argand.precision import PRECISIONS, Precision
from argand.runtime.choice_table import ChoiceTable, step

_FILLED = 1 << 24
"""From so many numbers on how many transforms there are changes nothing: they fill any card."""


@dataclass(frozen=True)
class DftWay:
    """A plan of transforms in words (`dft.plan_words`), or cuFFT."""

    words: str

    @property
    def plan(self) -> Plan | None:
        """The plan; None of cuFFT."""
        return plan_in(self.words)

    @staticmethod
    def of(plan: Plan | None) -> DftWay:
        """The way of a plan, or of None."""
        return DftWay(plan_words(plan))


def key(rows: int, length: int, precision: Precision, *, wide: bool) -> str:
    """The entry that transforms belong to; ``wide`` as of `dft.heuristics.choose`."""
    many = min(rows, max(1, _FILLED // length))
    return json.dumps([precision.name, length, step(many), int(wide)])


def chosen(problem: DftProblem, device: Device, *, wide: bool | None = None) -> Choice:
    """How transforms run on a GPU: as was measured there, else as `dft.heuristics.choose` has it.

    ``wide`` as of `choose`; None is that of contiguous rows.
    """
    method, length = problem.method, problem.length
    if wide is None:
        wide = method is not None and wide_fits(method.kind, length, length)
    if method is not None:
        name = key(problem.rows, length, problem.precision, wide=wide)
        measured = _found(name, device.index, TABLE.generation)
        if measured is not None:
            return measured
    return choose(method, problem.precision, device.require_arch(), wide=wide)


@lru_cache(maxsize=1024)
def _found(name: str, device: int, generation: int) -> Choice | None:
    way = TABLE.find(name, device)
    return None if way is None else Choice(way.plan, "the fastest that was measured on this device")


def _entry(name: str, row: dict[str, Any], arch: Arch) -> DftWay:
    """An entry's choice. Raises ValueError where it cannot solve what the entry is for."""
    way = DftWay(**row)
    precision, length, _, wide = json.loads(name)
    plan = way.plan
    if plan is not None:
        check_dft_plan(plan, PRECISIONS[precision], arch)
        if plan.length != length or (plan.wide and not wide):
            raise ValueError(f"{way.words} is no way to solve {name}")
    return way


TABLE = ChoiceTable(
    "dft", "dft-plans", _entry,
    "transforms take the choice of another device until `argand.tune_dft`",
)  # fmt: skip
