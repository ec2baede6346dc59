"""Values of a plan of products that Python and CUDA C++ both derive are the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.sm80.source import mma_source
from argand.gemm.sm80.tiles import mma_tiles, one_tile_of, with_copies
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.sm90.plan import ALIGNMENT, WORK_QUEUE_BYTES, Storage, WgmmaPlan
from argand.gemm.sm90.source import wgmma_source
from argand.gemm.sm90.tiles import wgmma_tiles
from argand.runtime.compile.nvrtc import CompileError
from argand.runtime.plan import is_legal

from tests.kernels.gemm.plans_in_cuda import compile_plans, plan_in_cuda
from tests.kernels.precisions import TENSOR

HOPPER, HEADER = arch_for(90), "gemm/sm90_ring.cuh"
STORAGES: tuple[Storage, ...] = ("fp32", "half", "planar")


def legal_tiles() -> list[tuple[str, WgmmaPlan]]:
    """Every tile with every storage that a precision has, k being the row operand's fast axis."""
    found = []
    for name in TENSOR:
        for storage in STORAGES:
            for tile in wgmma_tiles(PRECISIONS[name], storage):
                plan = replace(tile, k_major=storage != "planar")
                if is_legal(check_wgmma_plan, plan, PRECISIONS[name], HOPPER):
                    found.append((name, plan))
    return found


@pytest.mark.parametrize("precision", TENSOR)
def test_cuda_lays_a_stage_out_alike(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path))
    row, plans = PRECISIONS[precision], []
    for plan in (plan for name, plan in legal_tiles() if name == precision):
        checks = [
            f"kPlan.block_m() == {plan.block_m}",
            f"kPlan.threads() == {plan.threads}",
            f"kPlan.mma_k() == {row.operand.mma_k}",
            f"kPlan.box_row_bytes() == {plan.box_row_bytes(row)}",
            f"kPlan.boxes() == {plan.block_k // plan.box_k(row)}",
            f"kPlan.x_element_bytes() == {plan.x_element_bytes(row)}",
            f"kPlan.x_swizzle_elements() == {plan.x_swizzle_elements(row)}",
            f"kPlan.stage_bytes() == {plan.stage_bytes(row)}",
            f"kWorkSlots * kWorkSlotBytes == {WORK_QUEUE_BYTES}",
        ]
        for more in ({}, {"tma_epilogue": True}, {"cluster": 5}, {"fused_pack": True}):
            one = replace(plan, **more)
            end = f"Ring<kPlan>(0, 0).work_slot(0) + {WORK_QUEUE_BYTES + ALIGNMENT}"
            whole = f"{end} == {one.shared_bytes(row)}"
            plans.append(plan_in_cuda(wgmma_source(row, one), whole))
        plans.append(plan_in_cuda(wgmma_source(row, plan), *checks))
    compile_plans(HEADER, plans)


def test_a_stage_that_cuda_lays_out_otherwise_does_not_compile() -> None:
    wrong = plan_in_cuda(
        wgmma_source(PRECISIONS["tf32"], WgmmaPlan(2, 128, 32, 3)), "kPlan.stage_bytes() == 65537"
    )
    with pytest.raises(CompileError, match="stage_bytes"):
        compile_plans(HEADER, [wrong])


@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
def test_cuda_derives_a_plan_of_mma_sync_alike(precision: str) -> None:
    """Sums of small products, which the estimate of registers counts, above all."""
    row, plans, seen = PRECISIONS[precision], [], set()
    for tile in (*mma_tiles(row, HOPPER), *one_tile_of(row, HOPPER, 16)):
        slices = [replace(tile, cluster=n) for n in (1, 2)]
        for one, k in product(slices, (8, 64, 97, 128, 200, 10_000)):
            plan = with_copies(one, row, HOPPER, k)
            again = "kPlan.small_apart() && kPlan.whole_k > kPlan.promoted_k()"
            seen.add((plan.small_apart, plan.promoted_again))
            plans.append(plan_in_cuda(
                mma_source(row, plan),
                f"kPlan.threads() == {plan.threads}",
                f"kPlan.small_apart() == {str(plan.small_apart).lower()}",
                f"({again}) == {str(plan.promoted_again).lower()}",
            ))  # fmt: skip
    whole = {(False, False), (True, False), (True, True)}
    assert seen == (whole if row.terms > 1 else {(False, False)})
    compile_plans("gemm/sm80_plan.cuh", plans)
