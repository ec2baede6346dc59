"""Where blocks of the wgmma family wait for each other, so that what they share is read once.

Nothing here needs a GPU or CuPy. The waiting is gemm/sm90_throttle.cuh.
"""

from __future__ import annotations

from argand.gemm.sm90_plan import WgmmaPlan
from argand.gemm.sm90_scheduler import Division, Tiles
from argand.precision import Precision

PERIOD, LEAD = 512, 128
"""k from one place to the next where blocks wait, and how far ahead of the slowest one may be."""
LEAST_WAVES = 16
"""With fewer, blocks drift apart too little for waiting to pay."""


def find_throttle(
    plan: WgmmaPlan, precision: Precision, tiles: Tiles, division: Division, k: int,
    cache_bytes: int,
) -> tuple[int, int]:  # fmt: skip
    """Stages from one place where blocks wait to the next, and how many ahead one may be there.

    (0, 0) where they go as they will. They wait where turns are many and the operands of one do not
    fit a second-level cache of ``cache_bytes``: drifted apart, blocks read from memory what others
    have read before. Sums of one term lose more by waiting than they gain.
    """
    turns = division.whole // division.blocks
    lines = tiles.turn_lines(division.blocks, plan.block_m, plan.block_n)
    read = lines * k * precision.planar_bytes
    if precision.terms == 1 or turns < LEAST_WAVES or read < cache_bytes:
        return 0, 0
    return PERIOD // plan.depth, LEAD // plan.depth
