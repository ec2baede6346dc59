"""What a launch of the wgmma family makes of its plan: how results leave, blocks, shared tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

from argand.device import Arch, Device
from argand.gemm.sm90_plan import WgmmaPlan, is_legal
from argand.gemm.sm90_scheduler import Arrangement, Division, Memory, Tiles, arrange
from argand.precision import Precision
from argand.runtime.layout import Layout, is_k_major
from argand.runtime.tensor_map import ALIGNMENT

_WORTH_OVERLAPPING = 0.1
"""Of a tile's time, that a division whose pieces are as long as the head may take more."""


def copyable(x: Layout) -> bool:
    """Whether the copy engine can read an operand: contiguous one way, aligned the other."""
    fast, slow = (
        (x.column_stride, x.row_stride) if is_k_major(x) else (x.row_stride, x.column_stride)
    )
    aligned = all(stride * x.item % ALIGNMENT == 0 for stride in (slow, x.batch_stride))
    return fast == 1 and slow > 0 and x.batch_stride >= 0 and aligned and x.aligned >= ALIGNMENT


def with_tma_epilogue(plan: WgmmaPlan, precision: Precision, out: Layout, arch: Arch) -> WgmmaPlan:
    """The plan, with results through the copy engine where it can write them so."""
    if plan.half_output or not copyable(out):
        return plan
    staged = replace(plan, tma_epilogue=True, out_m_major=not is_k_major(out))
    # Else no shared memory is left for it, or tiles are narrower than a box.
    return staged if is_legal(staged, precision, arch) else plan


@dataclass(frozen=True)
class WgmmaProblem:
    """Z = alpha X Y^T + beta C: rows (of X), columns (rows of Y) and k, in batches.

    ``x_batched`` and ``y_batched`` say whether each product has its own operand. ``flip_result``
    conjugates the product before alpha. k is cut into ``parts``; then there are ``parts`` times as
    many results, each the sum over its part.
    """

    rows: int
    columns: int
    k: int
    batch: int
    x_batched: bool
    y_batched: bool
    alpha: complex = 1
    beta: complex = 0
    flip_result: bool = False
    parts: int = 1


def blocks_at_once(problem: WgmmaProblem, plan: WgmmaPlan, tiles: Tiles, device: Device) -> int:
    """One on each multiprocessor, or fewer where that keeps operands in the cache.

    Blocks that share a product's operands read them at the same time only while no product is left
    half done by a wave; where several products' operands fill the cache, that is worth the
    multiprocessors that stand idle.
    """
    cores = device.cores
    if plan.fused_pack:  # planes are fresh, and meet in the cache anyway
        return cores
    of_product = tiles.count // problem.batch
    together = cores // of_product
    inside = 8 * problem.k * (problem.rows + problem.columns)
    if not 0 < together < problem.batch or together * inside < device.cache_bytes // 2:
        return cores
    return together * of_product


def arrange_overlapped(
    plan: WgmmaPlan,
    precision: Precision,
    problem: WgmmaProblem,
    tiles: Tiles,
    most: int,
    memory: Memory,
    arch: Arch,
) -> tuple[WgmmaPlan, Arrangement]:
    """Tiles divided, and the plan with a head where results can leave behind it.

    That is where they only have a real factor, and every piece of a tile is as long as the head.
    """
    if problem.parts > 1:  # whoever cuts k into parts has done so to fill the card
        return plan, Arrangement(Division(min(tiles.count, most), tiles.count), 0)
    steps = -(-problem.k // plan.depth)
    piece = 8 * plan.block_m * plan.block_n

    def arranged(shortest: int) -> Arrangement:
        return arrange(tiles, most, steps, plan.depth, piece, memory.room, memory.planes, shortest)

    plain = arranged(1)
    headed = replace(plan, overlapped_stages=plan.stages - 1)
    only_scaled = problem.beta == 0 and problem.alpha.imag == 0
    # Blocks of one tile have nothing to do meanwhile.
    if tiles.count <= most or not only_scaled or not is_legal(headed, precision, arch):
        return plan, plain
    ahead = arranged(headed.overlapped_stages)
    late = ahead.division.turns(steps) - plain.division.turns(steps)
    if ahead.division.shortest(steps) < headed.overlapped_stages or late > _WORTH_OVERLAPPING:
        return plan, plain
    return headed, ahead
