"""Plans of fused packing, which idle warps of the wgmma family do. Needs no GPU and no CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from argand.gemm.pack.plan import pitch_of
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.scheduler import Tiles, raster_group_m

_BLOCK_K, _WARPS = 256, 3
"""K of a k-block, and warps of a block that pack, as in gemm/sm90_fused_pack.cuh."""
_MAXIMUM_LEAD = 2
"""Most k-blocks of 256 k by which packing of a batch leads the loads, at most those of a tile."""


@dataclass(frozen=True)
class FusedPack:
    """A plan by which idle warps pack the column operand while the consumers multiply.

    A wave reads ``panels_per_wave`` of the ``panels``, one for each column of tiles. A warp packs
    ``rows`` by 256 k at once, at most ``maximum_lead`` such k-blocks before its own block loads
    them. ``counters`` take 4 bytes each.
    """

    panels: int
    panels_per_wave: int
    rows: int
    maximum_lead: int
    counters: int


def plan_fused_pack(
    plan: WgmmaPlan, rows: int, columns: int, k: int, batches: int, blocks: int
) -> FusedPack:
    """Plan the packing of ``batches`` column operands of ``columns`` rows, for a grid of blocks.

    Warps pack fewer rows at once where there would not be work for each of them.
    """
    k_blocks = -(-pitch_of(k) // _BLOCK_K)
    column_tiles = -(-columns // plan.block_n)
    panels = batches * column_tiles
    row_tiles = -(-rows // plan.block_m)
    group = raster_group_m(column_tiles)
    tiles = Tiles(row_tiles, column_tiles, batches, plan.triangle)
    products = -(-blocks // tiles.each)  # of one wave
    panels_per_wave = min(-(-blocks // min(row_tiles, group)), products * column_tiles)
    if plan.triangle:  # which has as many panels in a raster group as tile rows
        panels_per_wave = products * (min(column_tiles, group) if group > 1 else column_tiles)
    row_blocks = min(panels_per_wave, panels) * k_blocks * plan.block_n
    pack_rows = 8
    while pack_rows > 1 and row_blocks // pack_rows < blocks * _WARPS:
        pack_rows //= 2
    # All waves of a single product read the same planes, so packing may lead without limit.
    lead = k_blocks if batches == 1 else min(_MAXIMUM_LEAD, k_blocks)
    return FusedPack(panels, panels_per_wave, pack_rows, lead, panels * k_blocks + 1)
