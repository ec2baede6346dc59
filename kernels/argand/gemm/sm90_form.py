"""Epilogue, blocks and tile division that a launch of the wgmma family derives from its plan."""

from __future__ import annotations

from dataclasses import replace

from argand.device import Arch, Device
from argand.gemm.sm90_epilogue import Epilogue
from argand.gemm.sm90_legality import is_legal
from argand.gemm.sm90_plan import WIDEST_IN_PLACE, WgmmaPlan
from argand.gemm.sm90_problem import WgmmaProblem
from argand.gemm.sm90_scheduler import (
    CallWorkspace,
    TileDivision,
    Tiles,
    TileSchedule,
    min_saved_k,
    schedule_tiles,
)
from argand.precision import Precision
from argand.runtime.layout import Layout, is_k_major
from argand.runtime.tensor_map import ALIGNMENT

_MAX_OVERLAP_DELAY = 0.1
"""Waves that a division for an overlapped epilogue may take beyond the shortest one."""
_MOST_IDLE = 1 / 16
"""Largest part of the multiprocessors that may be idle so that L2 holds whole products. Of drawn
batches on an H200 all blocks took 1.01 of the time of fewer where up to a twentieth was idle (14;
0.99 to 1.05), and 0.94 where a tenth to a quarter was (14; 0.84 to 1.05)."""


def copyable(x: Layout) -> bool:
    """Return whether TMA can address a matrix: one axis contiguous, the other strides aligned."""
    fast, slow = (
        (x.column_stride, x.row_stride) if is_k_major(x) else (x.row_stride, x.column_stride)
    )
    aligned = all(stride * x.item % ALIGNMENT == 0 for stride in (slow, x.batch_stride))
    return fast == 1 and slow > 0 and x.batch_stride >= 0 and aligned and x.aligned >= ALIGNMENT


def has_odd_pitch(x: Layout) -> bool:
    """Return whether TMA can address a matrix of complex64 by its even and by its odd lines.

    One axis is contiguous and the other stride odd; two lines are then whole 16 bytes apart, and so
    are two products (`has_odd_batches`).
    """
    fast, slow, lines = (
        (x.column_stride, x.row_stride, x.rows) if is_k_major(x)
        else (x.row_stride, x.column_stride, x.columns)
    )  # fmt: skip
    aligned = x.batch_stride >= 0 and x.aligned >= ALIGNMENT
    return fast == 1 and slow > 0 and slow % 2 == 1 and lines > 1 and x.item == 8 and aligned


def has_odd_batches(x: Layout) -> bool:
    """Return whether matrices of odd pitch are an odd number of complex64 apart too."""
    return has_odd_pitch(x) and x.batch_stride % 2 == 1


def with_tma_epilogue(plan: WgmmaPlan, precision: Precision, out: Layout, arch: Arch) -> WgmmaPlan:
    """Return the plan with a TMA epilogue where TMA can address the result and store it alone.

    TMA stores whole 16 bytes: of a line that ends within them it would write what lies beyond.
    """
    if plan.half_output or plan.power or not copyable(out):
        return plan
    staged = replace(plan, tma_epilogue=True, out_m_major=not is_k_major(out))
    if (out.rows if staged.out_m_major else out.columns) * out.item % ALIGNMENT:
        return plan
    # Illegal where shared memory does not suffice, or where tiles are narrower than a box.
    return staged if is_legal(staged, precision, arch) else plan


def with_epilogue(plan: WgmmaPlan, problem: WgmmaProblem, out: Layout) -> WgmmaPlan:
    """Return the plan with the epilogue that the call needs and no more code than that."""
    epilogue = epilogue_of(plan, problem, out)
    contiguous = out.column_stride == 1 and not plan.out_m_major
    # Beside a C, and while MMAs are in flight, no registers are left for mirror images.
    free = epilogue != "combine" and not plan.overlapped_stages
    mirror = problem.mirror and contiguous and free and problem.split_k_slices == 1
    return replace(plan, epilogue=epilogue, mirror=mirror)


def epilogue_of(plan: WgmmaPlan, problem: WgmmaProblem, out: Layout) -> Epilogue:
    """Return the name of the epilogue that a problem's kernel has (`sm90_epilogue`)."""
    if plan.overlapped_stages:  # a real alpha is applied beforehand
        return "descale"
    if problem.alpha != 1 or problem.beta != 0:
        return "combine"
    if plan.tma_epilogue:
        return "descale"
    if out.column_stride == 1:
        whole = out.in_pairs(along_columns=True)
        return "descale_rows" if whole else "descale_shifted_rows"
    if out.row_stride == 1 and plan.adjacent_rows:
        return "descale_columns"
    # To descale alone at any strides spills there (`sm90_legality`).
    wide = plan.storage == "fp32" and plan.block_n == WIDEST_IN_PLACE
    return "combine" if plan.power or wide else "descale"


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
    return blocks if fills and blocks >= (1 - _MOST_IDLE) * sm_count else sm_count


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
    if tiles.count <= max_blocks or not only_scaled or not is_legal(overlapped, precision, arch):
        return plan, plain
    # An overlapped epilogue stores no mirror images, and to mirror a result afterwards takes longer
    # than its epilogues: of five 2400 x 300 matrices at tf32 220 us on an H200, and 181 without.
    if problem.mirror and not plan.out_m_major:
        return plan, plain
    found = scheduled(overlapped.overlapped_stages)
    delay = found.division.waves(num_k_tiles) - plain.division.waves(num_k_tiles)
    too_short = found.division.shortest_work(num_k_tiles) < overlapped.overlapped_stages
    if too_short or delay > _MAX_OVERLAP_DELAY:
        return plan, plain
    return overlapped, found
