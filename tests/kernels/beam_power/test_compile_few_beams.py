"""The kernel of few beams, without a GPU: it compiles without spills, and its blocks fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from argand import PRECISIONS
from argand.beam_power.few_beams_heuristics import choose_few_beams_plan, takes_few_beams
from argand.beam_power.few_beams_plan import (
    MAX_FEW_BEAMS,
    MAX_PART_ANTENNAS,
    FewBeamsPlan,
    check_few_beams_plan,
    few_beams_kernel_name,
    few_beams_source,
    few_beams_tiles,
)
from argand.beam_power.plan import Samples
from argand.beam_power.problem import Detect, beam_power_problem
from argand.device import ARCHITECTURES, Arch, Device, arch_for
from argand.runtime.plan import PlanError

from tests.kernels.compiled import assert_clean

HOPPER = arch_for(90)


def chosen(
    name: str, beams: int, antennas: int, samples: Samples = "complex64", *,
    detect: Detect = "power", integrate: int = 4, arch: Arch = HOPPER, batch: int = 3,
) -> FewBeamsPlan | None:  # fmt: skip
    leading = (batch, 2) if detect == "stokes" else (batch,)
    problem = beam_power_problem(
        (*leading, beams, antennas), (*leading, antennas, 1000), detect=detect,
        integrate=integrate, precision=PRECISIONS[name],
    )  # fmt: skip
    if not takes_few_beams(problem, PRECISIONS[name], samples, arch):
        return None
    return choose_few_beams_plan(problem, samples, Device("cuda", "a card", 0, arch, 132))


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("name", "samples"),
    [("3xtf32", "complex64"), ("fp16", "half"), ("bf16", "half"), ("bf16", "int8")],
)
@pytest.mark.parametrize("detect", ["power", "stokes"])
@pytest.mark.parametrize("antennas", [20, 200])
@pytest.mark.parametrize("beams", [2, 3, 8, MAX_FEW_BEAMS])
def test_kernels_of_few_beams_compile(
    arch: Arch, beams: int, antennas: int, detect: Detect, name: str, samples: Samples
) -> None:
    integrate = 75 if samples == "half" else 4
    plan = chosen(name, beams, antennas, samples, detect=detect, integrate=integrate, arch=arch)
    if plan is None:
        assert beams == MAX_FEW_BEAMS or (arch != HOPPER and beams == 8)
        return
    assert plan.beams - 2 < beams <= plan.beams
    row = PRECISIONS[name]
    assert_clean(few_beams_source(plan, row), arch.target, few_beams_kernel_name(plan, row))


def test_few_beams_of_many_antennas_have_fewer_blocks_or_no_plan() -> None:
    most = 4 * MAX_PART_ANTENNAS
    for arch in ARCHITECTURES:
        for antennas in range(1, most, 61):
            plan = chosen("3xtf32", 8, antennas, arch=arch)
            if plan is not None:
                check_few_beams_plan(plan, antennas, arch)
    assert chosen("3xtf32", 8, 64) is not None
    assert chosen("3xtf32", MAX_FEW_BEAMS, most - 1) is None
    assert chosen("3xtf32", MAX_FEW_BEAMS + 1, 64) is None
    assert chosen("3xtf32", 2, most) is not None
    assert chosen("3xtf32", 2, most + 1) is None


@pytest.mark.each_value
@pytest.mark.parametrize("integrate", [1, 18, 75, 131, 150, 190, 1000])
@pytest.mark.parametrize("antennas", [30, 200, 500])
def test_tiles_are_as_long_as_bins_fill_them(integrate: int, antennas: int) -> None:
    plan = chosen("fp32", 4, antennas, integrate=integrate, batch=900)
    assert plan is not None
    tiles = few_beams_tiles(plan.times, integrate)
    held = tiles.bins * integrate / tiles.slices
    assert held >= 2 / 3 * plan.times


def test_few_tiles_have_more_loads_on_their_way() -> None:
    """As many as multiprocessors hold at once: each waits for its own samples alone."""
    problem = beam_power_problem(
        (45, 5, 398), (45, 398, 1872), detect="power", integrate=75, precision=PRECISIONS["fp16"]
    )
    plan = choose_few_beams_plan(problem, "half", Device("cuda", "a card", 0, HOPPER, 132))
    tiles = few_beams_tiles(plan.times, 75)
    assert plan.unroll > FewBeamsPlan(6).unroll
    assert 45 * -(-problem.bins // tiles.bins) <= 132 * plan.blocks


@pytest.mark.each_value
@pytest.mark.parametrize("integrate", [1, 7, 64, 65, 128, 129, 1000, 9001])
@pytest.mark.parametrize("times", [64, 128, 320])
def test_slices_of_bins_have_all_samples(times: int, integrate: int) -> None:
    tiles = few_beams_tiles(times, integrate)
    if tiles.slices == 1:
        assert 1 <= tiles.bins == times // integrate
    else:
        assert tiles.slice <= times
        assert 0 < integrate - (tiles.slices - 1) * tiles.slice <= tiles.slice


@pytest.mark.parametrize(
    ("name", "samples", "beams", "antennas", "taken"),
    [
        ("tf32", "complex64", 8, 200, True), ("tf32", "complex64", 9, 20, False),
        ("fp16", "half", 4, 200, True), ("fp16", "half", 5, 200, False),
        ("fp16", "half", 16, 31, True), ("bf16", "int8", 12, 200, True),
        ("bf16", "int8", 13, 200, False), ("3xtf32", "complex64", 16, 200, True),
        ("fp32", "complex64", 16, 20, True),
    ],
)  # fmt: skip
def test_tensor_cores_take_more_beams_at_one_term(
    name: str, samples: Samples, beams: int, antennas: int, taken: bool
) -> None:
    assert (chosen(name, beams, antennas, samples) is not None) == taken


def test_halves_take_fp32_where_bins_leave_tiles_of_tensor_cores_empty() -> None:
    assert chosen("fp16", 8, 200, "half", integrate=75) is not None
    assert chosen("fp16", 9, 200, "half", integrate=75) is None
    assert chosen("fp16", 8, 200, "half", detect="stokes") is not None


@pytest.mark.parametrize(
    ("changed", "antennas", "said"),
    [
        ({"beams": 3}, 64, "beams must be even and at most"),
        ({"polarizations": 3}, 64, "polarizations 1 or 2"),
        ({"parts": 3}, 64, "parts must be 1, 2, 4 or 8"),
        ({"unroll": 0}, 64, "unroll, warps and lane_times 1 or more"),
        ({"beams": 8}, 1000, "bytes of shared memory"),
        ({}, 2 * MAX_PART_ANTENNAS + 1, "a part must have at most 512 antennas"),
    ],
)
def test_other_plans_of_few_beams_are_refused(
    changed: dict[str, Any], antennas: int, said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        check_few_beams_plan(replace(FewBeamsPlan(4), **changed), antennas, HOPPER)
