"""CTA throttle of the wgmma family: where blocks wait for each other, so that a wave shares L2.

Nothing here needs a GPU or CuPy. The waiting is gemm/sm90_throttle.cuh.
"""

from __future__ import annotations

from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.scheduler import TileDivision, Tiles
from argand.precision import Precision

INTERVAL, MAXIMUM_LEAD = 512, 128
"""Elements of k from one wait to the next, and by which a block may lead the slowest one."""
MIN_WAVES = 16
"""Fewest waves after which blocks have drifted so far apart that waiting pays."""


def find_throttle(
    plan: WgmmaPlan, precision: Precision, tiles: Tiles, division: TileDivision, k: int,
    cache_bytes: int,
) -> tuple[int, int]:  # fmt: skip
    """Return the throttle's interval and maximum lead in k-tiles; (0, 0) is not a throttle.

    Blocks wait where waves are many and the operands of one wave exceed an L2 of ``cache_bytes``:
    blocks that drift apart read from memory what others have read before. One-term precisions lose
    more by waiting than they gain.
    """
    waves = division.data_parallel_tiles // division.blocks
    rows = tiles.wave_rows(division.blocks, plan.block_m, plan.block_n)
    wave_bytes = rows * k * precision.planar_bytes
    if precision.terms == 1 or waves < MIN_WAVES or wave_bytes < cache_bytes:
        return 0, 0
    return INTERVAL // plan.block_k, MAXIMUM_LEAD // plan.block_k
