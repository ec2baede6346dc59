"""Tuned plans of products: the candidate that was the fastest on a device.

`argand.tune` fills it, or ``python -m argand tune gemm 4096x4096x4096``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any

from argand.device import Device, gpu
from argand.gemm.candidates import EVERY_CLUSTER_K, candidates, candidates_in_tf32, most_slices
from argand.gemm.choice import GemmChoice
from argand.gemm.choice_workspace import workspace_of
from argand.gemm.families import Family
from argand.gemm.fma.plan import FmaPlan
from argand.gemm.heuristics import choose
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm90.plan import WgmmaPlan
from argand.precision import PRECISIONS
from argand.runtime.plans.tuned_plans import TunedPlans, size_bucket


def key(question: Question) -> str:
    """Return the name of the table's entry for products like this one."""
    precision, sizes, a, b, *_ = question
    rounded = [size_bucket(size) for size in (sizes.batch, sizes.m, sizes.n, sizes.k)]
    flags = [int(flag) for traits in (a, b) for flag in asdict(traits).values()]
    return json.dumps([precision.name, *rounded, sizes.half_output + 2 * sizes.power, *flags])


@dataclass
class Trial:
    """A choice that every product takes, and the question of the last product."""

    choice: GemmChoice | None
    question: Question | None = None


class _Trials(threading.local):
    """The contexts of a thread, the innermost one last."""

    def __init__(self) -> None:
        self.open: list[Trial] = []


_trials = _Trials()


@contextmanager
def trial(choice: GemmChoice | None) -> Iterator[Trial]:
    """Open a context in which this thread's lookups find the choice, and note their question.

    Products then run as they would with the choice in the table, at the same cost.
    """
    trials = _trials.open
    trials.append(Trial(choice))
    TABLE.changed()
    try:
        yield trials[-1]
    finally:
        trials.pop()
        TABLE.changed()


def lookup(question: Question, device: int) -> GemmChoice | None:
    """Return the tuned plan of a product, None where none was measured or its k is too long for it.

    Triangles have only the choices of trials, since tuned plans are for whole products. An entry
    serves longer k than it was measured at, but warpgroups that share k spill nothing.
    """
    trials = _trials.open
    if trials:
        trials[-1].question = question
        return trials[-1].choice
    sizes = question.sizes
    if sizes.triangle:
        return None
    if min(sizes.batch, sizes.m, sizes.n, sizes.k) == 0:
        return None  # nothing to measure; it would share the entry of size 1
    found = TABLE.find(key(question), device)
    if found is None or found.wgmma is None:
        return found
    each, row = -(-sizes.k // found.split_k_slices), found.computed_at(question.precision)
    return found if found.wgmma.takes_k(row, each) else None


def lookup_within(question: Question, device: int, family: Family | None) -> GemmChoice | None:
    """Return a product's tuned plan if it is in the family and within the limit, else None.

    The limit is the workspace that the question allows.
    """
    found = lookup(question, device)
    if found is None or family not in (None, found.family):
        return None
    allowed = question.allowed
    return found if allowed is None or workspace_of(found, question) <= allowed else None


def chosen(question: Question, device: int, family: Family | None = None) -> GemmChoice:
    """Return the device's tuned plan, else the candidate of the least estimate, of a family."""
    measured = lookup_within(question, device, family)
    if measured is not None:
        return measured
    card = gpu(device)
    return choose(question, card.require_arch(), card.sm_count, family, memory=card.relative_memory)


def _entry(name: str, row: dict[str, Any], device: Device) -> GemmChoice:
    """Return an entry's choice. Raises ValueError where it is none of the product's candidates."""
    precision, *numbers = json.loads(name)
    stored, flags = numbers[4], [bool(flag) for flag in numbers[5:]]
    each = len(fields(OperandTraits))
    plan = None if row["wgmma"] is None else WgmmaPlan(**row["wgmma"])
    choice = GemmChoice(
        plan, row["swapped"], row["split_k_slices"], in_tf32=row.get("in_tf32", False),
        fma=None if row.get("fma") is None else FmaPlan(**row["fma"]),
    )  # fmt: skip
    a, b = OperandTraits(*flags[:each]), OperandTraits(*flags[each:])
    whole, slices = replace(choice, split_k_slices=1), choice.split_k_slices
    may_slice = plan is not None and not stored
    sliced = slices == 1 or (may_slice and 1 < slices <= most_slices(device.sm_count))
    if not sliced or whole not in _candidates(precision, device, stored, a, b):
        raise ValueError(f"{row} is not a candidate plan of {name}")
    return choice


@lru_cache(maxsize=64)
def _candidates(
    precision: str, device: Device, stored: int, a: OperandTraits, b: OperandTraits
) -> frozenset[GemmChoice]:
    # A long k takes every tile except those that only a shorter one takes: of the fma family, and
    # of warpgroups and clusters that share k.
    found: set[GemmChoice] = set()
    for k in (1, EVERY_CLUSTER_K, 2**30):
        sizes = GemmSizes(1, 1, 1, k, stored == 1, power=stored == 2)
        question = Question(PRECISIONS[precision], sizes, a, b)
        for listed in (candidates, candidates_in_tf32):
            found.update(listed(question, device.require_arch(), device.sm_count))
    return frozenset(found)


TABLE = TunedPlans("gemm", "plans", _entry, "products are planned by estimates until `argand.tune`")
