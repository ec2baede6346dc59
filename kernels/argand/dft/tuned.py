"""The table of tuned plans of transforms: the fastest plan, or cuFFT, measured on a device.

`argand.tune_dft` or ``python -m argand tune dft 4096x1018`` fills it. Transforms without an entry
take the choice of `dft.heuristics` and `dft.few_rows`, whose thresholds to cuFFT were measured on
an H200.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from argand.device import Device
from argand.dft.few_rows import fills, with_few_rows
from argand.dft.heuristics import Choice, choose
from argand.dft.legality import check_dft_plan, wide_fits
from argand.dft.library_choice import LibraryKernels
from argand.dft.plan import Plan
from argand.dft.plan_words import plan_in, plan_words
from argand.dft.problem import DftProblem
from argand.precision import PRECISIONS, Precision
from argand.runtime.plans.tuned_plans import TunedPlans, size_bucket

_FILLED = 1 << 24
"""Numbers that fill any GPU: of more, the count of transforms is no part of a tuned plan's key."""


@dataclass(frozen=True)
class TunedDft:
    """A tuned plan, or cuFFT, as the text of `dft.plan_words`."""

    words: str

    @property
    def plan(self) -> Plan | None:
        """The plan; None for cuFFT."""
        return plan_in(self.words)

    @staticmethod
    def of(plan: Plan | None) -> TunedDft:
        """Return the entry of a plan, or of None for cuFFT."""
        return TunedDft(plan_words(plan))


def key(rows: int, length: int, precision: Precision, *, wide: bool) -> str:
    """Return the name of the entry of transforms; ``wide`` as in `dft.heuristics.choose`."""
    many = min(rows, max(1, _FILLED // length))
    return json.dumps([precision.name, length, size_bucket(many), int(wide)])


def chosen(problem: DftProblem, device: Device, *, wide: bool | None = None) -> Choice:
    """Return the choice for transforms on a GPU: the tuned plan, else `dft.heuristics.choose`'s.

    ``wide`` as in `choose`; None is that of contiguous rows. cuFFT is asked for its kernels where
    rows fill the GPU and the factors of their length leave it open. Raises RuntimeError as
    `dft.cufft_plans.plan_of`.
    """
    method, length = problem.method, problem.length
    if wide is None:
        wide = method is not None and wide_fits(method.kind, length, length)
    if method is not None:
        name = key(problem.rows, length, problem.precision, wide=wide)
        measured = _measured_choice(name, device.index, TABLE.generation)
        if measured is not None:
            return measured
    arch, precision, rows = device.require_arch(), problem.precision, problem.rows
    memory = device.relative_memory
    full = fills(rows, length, device)
    choice = choose(method, precision, arch, wide=wide, memory=memory, full=full)
    if method is None:
        return choice
    if choice.needs_library_kernels and full:
        kernels = library_kernels(length, rows, device.index)
        return choose(method, precision, arch, wide=wide, library=kernels, memory=memory, full=True)
    return with_few_rows(choice, precision, rows, length, device)


def library_kernels(length: int, rows: int, device: int) -> LibraryKernels | None:
    """Return `dft.cufft_kernels.kernels_of`, whose module needs CuPy."""
    from argand.dft.cufft_kernels import kernels_of

    return kernels_of(length, rows, device)


@lru_cache(maxsize=1024)
def _measured_choice(name: str, device: int, generation: int) -> Choice | None:
    tuned = TABLE.find(name, device)
    return None if tuned is None else Choice(tuned.plan, "the fastest plan measured on this device")


def _entry(name: str, row: dict[str, Any], device: Device) -> TunedDft:
    """Return the tuned plan of an entry. Raises ValueError where it does not fit the entry."""
    tuned = TunedDft(**row)
    precision, length, _, wide = json.loads(name)
    plan = tuned.plan
    if plan is not None:
        check_dft_plan(plan, PRECISIONS[precision], device.require_arch())
        if plan.length != length or (plan.wide_copies and not wide):
            raise ValueError(f"{tuned.words} does not compute {name}")
    return tuned


TABLE = TunedPlans(
    "dft", "dft-plans", _entry,
    "transforms take the choice of another device until `argand.tune_dft`",
)  # fmt: skip
