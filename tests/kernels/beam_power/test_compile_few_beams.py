"""The kernel of few beams, without a GPU: it compiles without spills, and its blocks fit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from argand import PRECISIONS
from argand.beam_power.few_beams_plan import (
    MOST_PART_ANTENNAS,
    FewBeamsPlan,
    check_few_beams_plan,
    choose_few_beams_plan,
    few_beams_kernel_name,
    few_beams_source,
)
from argand.device import ARCHITECTURES, Arch
from argand.runtime.plan import TARGET, PlanError

from tests.kernels.compiled import assert_clean

HOPPER = next(arch for arch in ARCHITECTURES if arch.target == TARGET)


@pytest.mark.each_value
@pytest.mark.parametrize("antennas", [20, 200])
@pytest.mark.parametrize("beams", [2, 3, 8])
def test_kernels_of_few_beams_compile(arch: Arch, beams: int, antennas: int) -> None:
    plan = choose_few_beams_plan(PRECISIONS["3xtf32"], beams, antennas, arch)
    assert plan is not None
    assert plan.beams // 2 < beams <= plan.beams
    assert_clean(few_beams_source(plan), arch.target, few_beams_kernel_name(plan))


def test_few_beams_of_many_antennas_have_fewer_blocks_or_no_plan() -> None:
    row, plans = PRECISIONS["3xtf32"], {}
    for antennas in range(1, 2 * MOST_PART_ANTENNAS, 61):
        for arch in ARCHITECTURES:
            plan = choose_few_beams_plan(row, 8, antennas, arch)
            if plan is not None:
                check_few_beams_plan(plan, antennas, arch)
                plans[arch.target, antennas] = plan.parts * plan.blocks
    hopper = [blocks for (target, _), blocks in plans.items() if target == TARGET]
    assert hopper == sorted(hopper, reverse=True)
    assert hopper[0] > hopper[-1]
    assert len(hopper) < len(range(1, 2 * MOST_PART_ANTENNAS, 61))
    assert choose_few_beams_plan(row, 9, 64, HOPPER) is None
    assert choose_few_beams_plan(row, 2, 2 * MOST_PART_ANTENNAS + 1, HOPPER) is None


@pytest.mark.parametrize(
    ("name", "beams", "antennas", "taken"),
    [
        ("tf32", 4, 200, True), ("tf32", 5, 200, False), ("tf32", 5, 63, True),
        ("bf16", 5, 200, False), ("3xtf32", 5, 200, True), ("fp32", 8, 200, True),
    ],
)  # fmt: skip
def test_tensor_cores_take_five_beams_of_one_term_and_many_antennas(
    name: str, beams: int, antennas: int, taken: bool
) -> None:
    plan = choose_few_beams_plan(PRECISIONS[name], beams, antennas, HOPPER)
    assert (plan is not None) == taken


@pytest.mark.parametrize(
    ("changed", "antennas", "said"),
    [
        ({"beams": 16}, 64, "beams must be 2, 4 or 8"), ({"parts": 3}, 64, "parts 1, 2, 4 or 8"),
        ({"unroll": 0}, 64, "unroll 1 or more"), ({"beams": 8}, 1000, "bytes of shared memory"),
        ({}, 2 * MOST_PART_ANTENNAS + 1, "a part must have at most 512 antennas"),
    ],
)  # fmt: skip
def test_other_plans_of_few_beams_are_refused(
    changed: dict[str, int], antennas: int, said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        check_few_beams_plan(replace(FewBeamsPlan(4), **changed), antennas, HOPPER)
