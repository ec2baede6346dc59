"""Plans of the wgmma family: what is legal and why not, shared memory, names, the source."""

from __future__ import annotations

import re
import sys
from dataclasses import fields, replace
from typing import Any

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, arch_for
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.sm90.plan import EPILOGUES, SPILL_INTERVAL, STORE_BOX_SIDE, Storage, WgmmaPlan
from argand.gemm.sm90.source import wgmma_kernel_name, wgmma_source
from argand.gemm.sm90.tiles import wgmma_tiles, with_rounded_rows
from argand.runtime.plan import WGMMA_TARGET, PlanError, is_legal

from tests.kernels.precisions import TENSOR

HOPPER = arch_for(90)
STORAGES: tuple[Storage, ...] = ("fp32", "half", "planar")
LARGE = WgmmaPlan(2, 128, 32, 3)
SPLIT = WgmmaPlan(2, 128, 16, 3)


def test_tiles_that_fit_are_legal() -> None:
    check_wgmma_plan(LARGE, PRECISIONS["tf32"], HOPPER)
    check_wgmma_plan(SPLIT, PRECISIONS["3xtf32"], HOPPER)
    for name in TENSOR:
        planar = wgmma_tiles(PRECISIONS[name], "planar")
        assert all(is_legal(check_wgmma_plan, plan, PRECISIONS[name], HOPPER) for plan in planar), (
            name
        )


@pytest.mark.parametrize(
    ("precision", "plan", "change", "message"),
    [
        ("tf32", LARGE, {"m_warpgroups": 0}, "warpgroups must be"),
        ("tf32", LARGE, {"m_warpgroups": 4}, "warpgroups must be"),
        ("tf32", LARGE, {"block_n": 12}, "block_n must be 8, 16, ... 256"),
        ("tf32", LARGE, {"block_n": 0}, "block_n must be 8, 16, ... 256"),
        ("tf32", LARGE, {"block_n": 264}, "block_n must be 8, 16, ... 256"),
        ("tf32", LARGE, {"block_k": 12}, "block_k must be a multiple of 8"),
        ("bf16", LARGE, {"block_k": 24}, "block_k must be a multiple of 16"),
        ("tf32", LARGE, {"block_k": 24}, "swizzle of 32, 64 or 128 bytes"),
        ("bf16", LARGE, {"block_k": 128}, "a stage deeper than a swizzle of 128 bytes is of split"),
        ("tf32", LARGE, {"block_k": 8, "k_major": True}, "multiple of 16 where k is contiguous"),
        ("bf16", LARGE, {"block_k": 16, "k_major": True, "storage": "half"},
         "multiple of 32 where k is contiguous"),
        ("tf32", LARGE, {"stages": 1}, "stages must be at least 2"),
        ("tf32", LARGE, {"block_n": 8, "block_k": 8}, "a stage must begin where a swizzle does"),
        ("tf32", LARGE, {"storage": "half"}, "pairs of 16 bits are operands of one term"),
        ("3xfp16", SPLIT, {"storage": "half"}, "pairs of 16 bits are operands of one term"),
        ("fp16", LARGE, {}, "are packed beforehand"),
        ("3xtf32", SPLIT, {"block_k": 32}, "stage deeper than a swizzle of 128 bytes is of split"),
        ("tf32", LARGE, {"block_k": 64}, "a stage deeper than a swizzle of 128 bytes is of split"),
        ("tf32", LARGE, {"overlapped_stages": 2},
         "overlapped stages, fewer than the stages, are for TMA epilogues"),
        ("tf32", LARGE, {"tma_epilogue": True, "overlapped_stages": 3},
         "overlapped stages, fewer than the stages"),
        ("bf16", replace(LARGE, tma_epilogue=True), {"overlapped_stages": 2},
         "overlapped stages are for one term of tf32"),
        ("tf32", replace(LARGE, tma_epilogue=True, k_major=True), {"overlapped_stages": 2},
         "rows that are contiguous or in planes"),
        ("tf32", replace(LARGE, tma_epilogue=True), {"epilogue": "combine", "overlapped_stages": 2},
         "an overlapped epilogue descales alone"),
        ("tf32", replace(LARGE, tma_epilogue=True), {"epilogue": "descale_rows"},
         "a TMA epilogue has one way to store"),
        ("tf32", replace(LARGE, k_major=True), {"epilogue": "descale_columns"},
         "lanes that hold adjacent rows"),
        ("tf32", LARGE, {"half_output": True}, "16-bit results need a 16-bit operand format"),
        ("bf16", LARGE, {"half_output": True, "power": True}, "squared magnitudes are fp32"),
        ("bf16", LARGE, {"half_output": True, "tma_epilogue": True},
         "a TMA epilogue stores complex64"),
        ("tf32", LARGE, {"block_n": 8, "block_k": 32, "tma_epilogue": True},
         f"boxes of {STORE_BOX_SIDE} columns"),
        ("tf32", replace(LARGE, tma_epilogue=True), {"ping_pong": True, "overlapped_stages": 2},
         "a ping-pong is of two warpgroups, without an overlapped epilogue"),
        ("3xtf32", SPLIT, {"ping_pong": True, "m_warpgroups": 1},
         "a ping-pong is of two warpgroups"),
        ("tf32", LARGE, {"stages": 4}, f"a block may use {227 * 1024} bytes of shared memory"),
        ("3xfp16", SPLIT, {"cluster": 4, "block_n": 40},
         "a cluster has at most 8 blocks, of which half or more store equal parts of a tile"),
        ("3xfp16", SPLIT, {"cluster": 2}, "a cluster shares tiles of 64 rows"),
        ("tf32", LARGE, {"cluster": 16}, "a cluster has at most 8 blocks"),
        ("tf32", replace(LARGE, stages=2), {"cluster": 2, "fused_pack": True,
                                              "m_warpgroups": 1},
         "blocks of a cluster store a part"),
        ("3xtf32", SPLIT, {"k_warpgroups": 2, "m_warpgroups": 1}, "each every other stage"),
        ("tf32", LARGE, {"fused_pack": True, "block_n": 256, "stages": 2},
         "fused packing is for tiles of up to 128 columns"),
        ("bf16", replace(LARGE, storage="planar"), {"fused_pack": True}, "for one term of tf32"),
        ("tf32", LARGE, {"conjugate_y": True}, "those of the row operand need one in planes"),
        ("tf32", LARGE, {"odd_pitch": True, "tma_epilogue": True}, "odd pitches are of fp32 pairs"),
        ("tf32", LARGE, {"odd_batches": True}, "odd batches are of an odd pitch"),
        ("tf32", LARGE, {"odd_batches": True, "odd_pitch": True, "fused_pack": True},
         "their k is exchanged by the pack kernel alone"),
        ("tf32", LARGE, {"shared_columns": 4}, "tiles share the columns of a sector"),
        ("tf32", LARGE, {"power": True, "triangle": True}, "are fp32, of all of a product"),
        ("tf32", LARGE, {"ping_pong": True, "triangle": True}, "a ping-pong is of two warpgroups"),
        ("3xtf32", SPLIT, {"tma_epilogue": True}, "leave no registers for a TMA epilogue"),
        ("tf32", LARGE, {"triangle": True, "fused_pack": True}, "128 rows, both operands in"),
        ("tf32", LARGE, {"mirror": True}, "mirrored tiles are of a triangle"),
        ("tf32", replace(LARGE, triangle=True, mirror=True), {}, "stored by TMA or in rows"),
        ("tf32", replace(LARGE, triangle=True, tma_epilogue=True), {"mirror": True},
         "mirrored tiles are added to no C"),
        ("fp16", replace(LARGE, storage="planar", triangle=True, epilogue="descale_rows"),
         {"mirror": True, "half_output": True}, "mirrored tiles are complex64"),
        ("fp64", LARGE, {}, "operand must be one of"),
        ("fp32", LARGE, {}, "operand must be one of"),
    ],
)  # fmt: skip
def test_an_illegal_plan_says_why(
    precision: str, plan: WgmmaPlan, change: dict[str, Any], message: str
) -> None:
    plan = replace(plan, **change)
    with pytest.raises(PlanError, match=re.escape(message)):
        check_wgmma_plan(plan, PRECISIONS[precision], HOPPER)


def test_a_thread_has_an_odd_row_beside_an_even_one() -> None:
    """So contiguous rows of results are stored in pairs, though k is contiguous."""
    plan = replace(LARGE, k_major=True, odd_pitch=True, epilogue="descale_columns")
    check_wgmma_plan(plan, PRECISIONS["tf32"], HOPPER)


@pytest.mark.parametrize(
    "arch",
    [arch for arch in ARCHITECTURES if arch.target != WGMMA_TARGET],
    ids=lambda arch: arch.target,
)
def test_only_hopper_has_the_instructions(arch: Any) -> None:
    with pytest.raises(PlanError, match=f"wgmma needs sm_90a, got {arch.target}"):
        check_wgmma_plan(LARGE, PRECISIONS["tf32"], arch)


def test_a_broken_rule_comes_with_the_plan() -> None:
    plan = replace(LARGE, stages=1)
    with pytest.raises(PlanError, match=re.escape(repr(plan))):
        check_wgmma_plan(plan, PRECISIONS["tf32"], HOPPER)


def test_block_and_threads() -> None:
    """Each consumer warpgroup has 64 rows; one more is the producer."""
    assert [(plan.block_m, plan.threads) for plan in (WgmmaPlan(1, 64, 32, 5), LARGE)] == [
        (64, 256), (128, 384),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("precision", "plan", "stage"),
    [
        # Interleaved fp32 pairs of 128 rows by 32 k, two planes of 128 columns by 128 bytes.
        ("tf32", LARGE, 128 * 32 * 8 + 2 * 128 * 128),
        # Pairs of 16 bits by 64 k.
        ("bf16", WgmmaPlan(2, 128, 64, 3, storage="half"), 128 * 64 * 4 + 2 * 128 * 128),
        # Two terms: four planes of 16 bits on either side.
        ("3xfp16", WgmmaPlan(2, 96, 32, 3, "planar"), 4 * 128 * 64 + 4 * 96 * 64),
        ("3xtf32", WgmmaPlan(1, 64, 16, 5), 64 * 16 * 8 + 4 * 64 * 64),
    ],
)
def test_shared_memory(precision: str, plan: WgmmaPlan, stage: int) -> None:
    row = PRECISIONS[precision]
    assert plan.stage_bytes(row) == stage
    # Two barriers of 8 bytes a stage, and up to 1024 bytes in front, where the swizzle begins.
    assert plan.shared_bytes(row) == plan.stages * (stage + 16) + 4 * 64 + 1024
    staged = replace(plan, tma_epilogue=True)
    # Two boxes of 16 x 16 complex numbers for each consumer warp.
    assert staged.shared_bytes(row) - plan.shared_bytes(row) == 4 * plan.m_warpgroups * 2 * 2048


OTHER: dict[str, tuple[Any, ...]] = {
    "m_warpgroups": (1, 3), "block_n": (64, 96), "block_k": (16, 64), "stages": (2, 4),
    "storage": ("half", "planar"),
    "k_major": (True,), "half_output": (True,), "prescaled": (True,), "tma_epilogue": (True,),
    "out_m_major": (True,), "fused_pack": (True,), "overlapped_stages": (2,),
    "triangle": (True,), "conjugate_y": (True,), "power": (True,),
    "odd_pitch": (True,), "odd_batches": (True,),
    "mirror": (True,), "shared_columns": (4,), "k_warpgroups": (2,),
    "ping_pong": (True,), "cluster": (2, 4),
    "epilogue": EPILOGUES[1:],
}  # fmt: skip
"""Other values of every field of a plan."""


def test_every_field_of_a_plan_is_varied_here() -> None:
    assert set(OTHER) == {field.name for field in fields(WgmmaPlan)}


def test_kernels_of_other_code_have_other_names() -> None:
    """One name, one source: over pairs of changed fields, at every precision."""
    changes = [{name: value} for name, values in OTHER.items() for value in values]
    plans = {
        replace(LARGE, **one, **two)
        for one in changes
        for two in changes
        if not one.keys() & two.keys()
    }
    sources: dict[str, str] = {}
    for precision in TENSOR:
        for plan in plans | {LARGE}:
            name = wgmma_kernel_name(PRECISIONS[precision], plan)
            source = wgmma_source(PRECISIONS[precision], plan)
            assert sources.setdefault(name, source) == source, plan
    assert len(sources) == len(TENSOR) * len(plans | {LARGE})


@pytest.mark.parametrize("name", [name for name in TENSOR if PRECISIONS[name].terms > 1])
def test_accumulators_of_a_long_k_spill(name: str) -> None:
    """Those of every tile of two terms, from 3/2 of the interval on; those of one term never.

    Warpgroups that share k have no memory of their own, and take no such k.
    """
    row = PRECISIONS[name]
    for storage in STORAGES:
        for plan in wgmma_tiles(row, storage):
            longest = 3 * SPILL_INTERVAL // 2 * plan.block_k * plan.k_warpgroups
            assert plan.takes_k(row, longest)
            assert not plan.spills_accumulators(row, longest)
            assert plan.takes_k(row, longest + 1) == plan.spills_accumulators(row, longest + 1)
            assert plan.takes_k(row, longest + 1) == (plan.k_warpgroups == 1)
            assert f".spill_interval = {SPILL_INTERVAL}," in wgmma_source(row, plan)
    assert not LARGE.spills_accumulators(PRECISIONS["tf32"], 1 << 20)


def test_a_kernel_spills_at_the_interval_of_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests and sanitizers shorten it, so that products of a short k spill."""
    row = PRECISIONS["3xtf32"]
    plan = wgmma_tiles(row, "planar")[0]
    monkeypatch.setattr(sys.modules["argand.gemm.sm90.plan"], "SPILL_INTERVAL", 8)
    assert plan.spills_accumulators(row, 12 * plan.block_k + 1)
    assert ".spill_interval = 8," in wgmma_source(row, plan)


@pytest.mark.parametrize(
    ("plan", "change"),
    [
        (WgmmaPlan(1, 80, 32, 4, k_major=True), {"block_k": 64}),
        (WgmmaPlan(1, 80, 32, 4, k_major=True, odd_pitch=True), {"block_k": 64}),
        (WgmmaPlan(1, 96, 32, 4, k_major=True), {"block_k": 64, "stages": 3}),
        (WgmmaPlan(1, 48, 32, 5, k_major=True, cluster=2), {"block_k": 64, "stages": 4}),
        (WgmmaPlan(1, 80, 32, 4, k_major=True, cluster=2), {}),
        (WgmmaPlan(1, 80, 32, 4), {}),
        (WgmmaPlan(2, 48, 32, 4), {"stages": 3}),
        (WgmmaPlan(2, 48, 32, 4, k_major=True), {}),
        (WgmmaPlan(2, 96, 32, 3), {}),
        (WgmmaPlan(1, 64, 32, 5, k_major=True, triangle=True), {}),
        (WgmmaPlan(2, 64, 64, 4, storage="planar"), {}),
    ],
)  # fmt: skip
def test_stages_of_rows_that_are_rounded_as_they_are_read(
    plan: WgmmaPlan, change: dict[str, int]
) -> None:
    row, found = PRECISIONS["bf16"], with_rounded_rows(plan, PRECISIONS["bf16"])
    assert found == replace(plan, **change)  # type: ignore[arg-type]
    check_wgmma_plan(found, row, HOPPER)
    for name in ("tf32", "3xfp16"):
        assert with_rounded_rows(plan, PRECISIONS[name]) == plan
