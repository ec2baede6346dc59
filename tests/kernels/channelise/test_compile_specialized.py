"""Filter banks by specialised warps, without a GPU: kernels without spills, and plans that fit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from argand import PRECISIONS, ChanneliseProblem
from argand.channelise.plan import UNITS, plan_channelise
from argand.channelise.sm90_plan import (
    SpecializedPlan,
    check_specialized_plan,
    specialized,
    specialized_name,
    specialized_source,
)
from argand.device import ARCHITECTURES, arch_for
from argand.runtime.plan import WGMMA_TARGET, PlanError

from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import assert_clean

HOPPER = arch_for(90)
BANKS = [
    (1024, 8), (4096, 8), (512, 5), (256, 16), (1024, 1), (512, 16), (1024, 3), (512, 4), (2048, 8),
    (3072, 8), (2048, 4),
]  # fmt: skip

CASES = [(BANKS[0], "int8"), (BANKS[1], "conjugate_int8")]
"""Integers are those that are converted."""
if EXHAUSTIVE:
    CASES = [*product(BANKS, UNITS)]


def found(
    channels: int, taps: int, component: str = "float32", oversampling: int = 1, real: bool = False
) -> SpecializedPlan | None:
    problem = ChanneliseProblem(
        (), 1 << 22, channels, taps, Fraction(oversampling), real, PRECISIONS["fp32"]
    )
    plan = plan_channelise(problem, HOPPER)
    assert plan is not None
    return specialized(plan, component, HOPPER)


@pytest.mark.parametrize(("bank", "component"), CASES, ids=str)
def test_kernels_compile(bank: tuple[int, int], component: str) -> None:
    plan = found(*bank)
    assert plan is not None
    plan = replace(plan, unit_bytes=UNITS[component][1])
    assert_clean(
        specialized_source(plan, component), WGMMA_TARGET, specialized_name(plan, component)
    )


@pytest.mark.parametrize(
    "one",
    [
        {"oversampling": 2}, {"real": True}, {"channels": 2304, "taps": 8},
        {"channels": 512, "taps": 13}, {"taps": 4, "component": "int8"},
    ],
)  # fmt: skip
def test_others_have_no_plan(one: dict[str, Any]) -> None:
    """Oversampled, real, columns that are not blocks, a long turn, and few taps of integers."""
    assert found(**({"channels": 1024, "taps": 8} | one)) is None


def test_clusters_share_columns() -> None:
    expected = {1024: 1, 1536: 3, 2048: 2, 2560: 5, 3072: 3, 3584: 7, 4096: 4}
    for channels, cluster in expected.items():
        plan = found(channels, 8)
        assert plan is not None
        assert plan.cluster == cluster


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cluster": 3}, "must divide 1024"),
        ({"cluster": 16}, "up to 8 blocks"),
        ({"slots": 3}, "a slot must have one group"),
    ],
)
def test_other_clusters_are_refused(changes: dict[str, Any], said: str) -> None:
    plan = found(4096, 8)
    assert plan is not None
    with pytest.raises(PlanError, match=said):
        check_specialized_plan(replace(plan, **changes), HOPPER)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"threads": 96}, "whole warpgroups of 128"),
        ({"slots": 3}, "slots exceed groups"),
        ({"batch": 3}, "divide a number up to 16"),
        ({"depth": 3}, "divide a number up to 16"),
        ({"depth": 1}, "depth must be 2 or more"),
        ({"filter_registers": 232}, "registers"),
        ({"slots": 7}, "bytes of shared memory"),
    ],
)
def test_other_plans_are_refused(changes: dict[str, Any], said: str) -> None:
    plan = found(1024, 8)
    assert plan is not None
    with pytest.raises(PlanError, match=said):
        check_specialized_plan(replace(plan, **changes), HOPPER)
    with pytest.raises(PlanError, match="specialised warps need sm_90a, got sm_80"):
        check_specialized_plan(replace(plan, slots=2), ARCHITECTURES[0])
