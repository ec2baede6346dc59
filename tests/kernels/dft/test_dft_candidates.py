"""Candidate plans of transforms without a GPU, and the best of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES
from argand.dft.candidates import (
    best_legal,
    fullest_legal,
    is_held,
    kinds_of,
    ordered,
    plan_order,
)
from argand.dft.hankel import HankelPlan
from argand.dft.method import method_for


@pytest.mark.parametrize("precision", ["3xfp16", "tf32"])
@pytest.mark.parametrize("length", [24, 67, 127, 251, 521, 1009, 1155, 3072, 4093, 8190, 14_009])
def test_the_best_plan_is_found_among_few(length: int, precision: str) -> None:
    """It is that of all legal plans, because none of fewer groups is estimated to be better."""
    row, method = PRECISIONS[precision], method_for(length)
    for plans in map(list, kinds_of(method, row, length % 2 == 0)):
        for plan in plans[::7]:
            if not isinstance(plan, HankelPlan) and getattr(plan, "groups", 1) > 1:
                fewer = replace(plan, groups=plan.groups - 1)
                assert plan_order(fewer, row) >= plan_order(plan, row)
        for arch in ARCHITECTURES:
            legal = [found for plan in plans if (found := fullest_legal(plan, row, arch))]
            every = [*filter(is_held, legal)]
            best = best_legal(plans, row, arch, is_held)
            assert best == (ordered(every, row)[0] if every else None)
