"""Parts of a wgmma plan that its launch adds: stages, ping-pong, epilogue, overlap, schedule.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from argand.device import Arch, Device
from argand.gemm.question import GemmSizes
from argand.gemm.sm90.epilogue_choice import epilogue_of, with_epilogue, with_tma_epilogue
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.problem import WgmmaProblem
from argand.gemm.sm90.scheduler import (
    CallWorkspace,
    TileDivision,
    Tiles,
    TileSchedule,
    min_saved_k,
    schedule_tiles,
)
from argand.gemm.sm90.tiles import with_ping_pong, with_rounded_rows
from argand.precision import Precision
from argand.runtime.calls.layout import Layout
from argand.runtime.plan import PlanError, is_legal

_MAX_OVERLAP_DELAY = 0.1
"""Waves that a division for an overlapped epilogue may take beyond the shortest one."""
_MAX_IDLE = 1 / 16
"""Largest part of the multiprocessors that may be idle so that L2 holds whole products."""


class LaunchPlan(NamedTuple):
    """A plan as it is launched, the tiles of the problem, and their schedule."""

    plan: WgmmaPlan
    tiles: Tiles
    schedule: TileSchedule


def plan_launch(
    plan: WgmmaPlan,
    precision: Precision,
    problem: WgmmaProblem,
    out: Layout,
    device: Device,
    workspace: CallWorkspace,
) -> LaunchPlan:
    """Return a plan with all that follows from sizes, scalars and the result's layout.

    Raises PlanError for a triangle of tiles that are not square.
    """
    arch = device.require_arch()
    if plan.triangle and not plan.covers_triangle(problem.rows):
        raise PlanError(f"a triangle of {problem.rows} rows takes square tiles, got {plan}")
    plan = with_rounded_rows(plan, precision)
    if problem.split_k_slices == 1:
        sizes = GemmSizes(problem.batch, problem.rows, problem.columns, problem.k)
        by_tma = with_tma_epilogue(plan, precision, out, arch).tma_epilogue
        plan = with_ping_pong(
            plan, precision, problem.k, sizes.tiles(plan.block_m, plan.block_n),
            device.sm_count, overlaps=by_tma and plan.can_overlap_epilogue(precision),
        )  # fmt: skip
    plan = with_tma_epilogue(plan, precision, out, arch)
    found: LaunchPlan | None = None
    if epilogue_of(plan, problem, out) == "descale_shifted_rows" and not problem.mirror:
        shared = plan.with_shared_columns(problem.columns, problem.k)
        found = _scheduled(shared, precision, problem, device, workspace)
        # `workspace` counts planes, over which partial tiles may lie, without shared columns.
        if found.schedule.planes_offset is not None:
            found = None
    found = found or _scheduled(plan, precision, problem, device, workspace)
    return found._replace(plan=with_epilogue(found.plan, problem, out))


def _scheduled(
    plan: WgmmaPlan,
    precision: Precision,
    problem: WgmmaProblem,
    device: Device,
    workspace: CallWorkspace,
) -> LaunchPlan:
    """Return the plan, with an overlapped epilogue where that is possible, and its schedule."""
    tiles = Tiles(
        -(-problem.rows // plan.block_m), -(-problem.columns // plan.tile_stride_n),
        problem.batch * problem.split_k_slices, plan.triangle,
    )  # fmt: skip
    if plan.cluster > 1:
        each = -(-problem.k // (plan.block_k * plan.cluster))
        division = TileDivision(tiles.count * plan.cluster, tiles.count, 0, each)
        return LaunchPlan(plan, tiles, TileSchedule(division, 0))
    blocks = persistent_blocks(problem, plan, tiles, device)
    plan, schedule = schedule_with_overlap(
        plan, precision, problem, tiles, blocks, workspace, device.require_arch()
    )
    return LaunchPlan(plan, tiles, schedule)


def persistent_blocks(problem: WgmmaProblem, plan: WgmmaPlan, tiles: Tiles, device: Device) -> int:
    """Return the most blocks of the persistent kernel, at most one a multiprocessor.

    Blocks that share a product's operands find them in L2 only while no wave leaves a product half
    done. Where the operands of several products fill L2, that is worth a few idle multiprocessors.
    """
    sm_count = device.sm_count
    if plan.fused_pack:  # planes were written just before, so they are in L2 anyway
        return sm_count
    tiles_per_product = tiles.count // problem.batch
    products = sm_count // tiles_per_product
    blocks = products * tiles_per_product
    operand_bytes = 8 * problem.k * (problem.rows + problem.columns)
    fills = products < problem.batch and products * operand_bytes >= device.cache_bytes // 2
    return blocks if fills and blocks >= (1 - _MAX_IDLE) * sm_count else sm_count


def schedule_with_overlap(
    plan: WgmmaPlan,
    precision: Precision,
    problem: WgmmaProblem,
    tiles: Tiles,
    max_blocks: int,
    workspace: CallWorkspace,
    arch: Arch,
) -> tuple[WgmmaPlan, TileSchedule]:
    """Return the tile schedule, and the plan with an overlapped epilogue where that is possible.

    It is possible where the epilogue only multiplies by a real alpha, and where each partial tile
    has at least as many k-tiles as the plan overlaps.
    """
    if problem.split_k_slices > 1:  # slices alone fill the card
        return plan, TileSchedule(TileDivision(min(tiles.count, max_blocks), tiles.count), 0)
    num_k_tiles = -(-problem.k // plan.block_k)
    partial_bytes = 8 * plan.block_m * plan.block_n

    def scheduled(min_k_tiles: int) -> TileSchedule:
        return schedule_tiles(
            tiles, max_blocks, num_k_tiles, plan.block_k, partial_bytes, workspace, min_k_tiles,
            min_saved_k(plan, precision),
        )  # fmt: skip

    plain = scheduled(1)
    overlapped = replace(plan, overlapped_stages=plan.stages - 1, epilogue="descale")
    only_scaled = problem.beta == 0 and problem.alpha.imag == 0
    # A block with one tile has no next mainloop to overlap with.
    if (
        tiles.count <= max_blocks
        or not only_scaled
        or not is_legal(check_wgmma_plan, overlapped, precision, arch)
    ):
        return plan, plain
    # An overlapped epilogue stores no mirror images, and to mirror a result afterwards takes longer
    # than its epilogues.
    if problem.mirror and not plan.out_m_major:
        return plan, plain
    found = scheduled(overlapped.overlapped_stages)
    delay = found.division.waves(num_k_tiles) - plain.division.waves(num_k_tiles)
    too_short = found.division.shortest_work(num_k_tiles) < overlapped.overlapped_stages
    if too_short or delay > _MAX_OVERLAP_DELAY:
        return plan, plain
    return overlapped, found
