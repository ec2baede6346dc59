"""Tiles of the wgmma family, by the storage of the row operand.

Nothing here needs a GPU or CuPy. The times that constants are fitted to are in
docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache

from argand.device import HOPPER, arch_for
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.sm90.plan import Storage, WgmmaPlan
from argand.precision import Precision
from argand.runtime.plan import is_legal

# Tiles by number of terms, for an interleaved or half row operand and for a planar one: warpgroups
# of 64 rows, block_n, block_k (of 16 bits, but beside fp32 pairs, half of what it becomes), stages.
# A thread has 240 registers: accumulators take block_n at one term and 3 / 2 block_n at two, where
# the MMAs of one part at a time have a set of their own; fragments need some of the rest.
_ONE_TERM = (
    WgmmaPlan(2, 128, 32, 3), WgmmaPlan(2, 96, 32, 3), WgmmaPlan(2, 64, 32, 4),
    WgmmaPlan(2, 32, 32, 4), WgmmaPlan(1, 96, 32, 4), WgmmaPlan(1, 64, 32, 5),
    WgmmaPlan(1, 32, 32, 6),
)  # fmt: skip
# Widths between those are for sides that would leave a third of a tile empty: at tf32, and where
# bf16 reads the row operand in place.
_BETWEEN = (
    WgmmaPlan(2, 160, 32, 3), WgmmaPlan(2, 112, 32, 3), WgmmaPlan(2, 80, 32, 3),
    WgmmaPlan(2, 48, 32, 4), WgmmaPlan(1, 80, 32, 4), WgmmaPlan(1, 48, 32, 5),
    *(WgmmaPlan(2, columns, 32, 3) for columns in (120, 104, 88)),
)  # fmt: skip
# At two terms a warp's loads, splitting and promotion take longer than its MMAs, so two warpgroups
# share the k of a tile of 64 rows.
_TWO_TERMS = (
    WgmmaPlan(2, 128, 16, 3), WgmmaPlan(2, 112, 16, 4), WgmmaPlan(2, 96, 16, 3),
    WgmmaPlan(2, 64, 16, 4), WgmmaPlan(1, 64, 16, 6, k_warpgroups=2),
)  # fmt: skip
# Tiles in 16 bits whose row operand is scaled in each stage come in steps of eight columns.
_TWO_TERMS_SCALED = (
    *(WgmmaPlan(2, columns, 32, 3) for columns in range(128, 64, -8)),
    *(WgmmaPlan(2, columns, 32, 4) for columns in range(64, 24, -8)),
    WgmmaPlan(1, 128, 16, 6, k_warpgroups=2),
    *(WgmmaPlan(1, columns, 32, 4, k_warpgroups=2) for columns in range(96, 56, -8)),
    *(WgmmaPlan(1, columns, 32, 6, k_warpgroups=2) for columns in range(56, 24, -8)),
)
# Both operands are in planes here. Accumulators are promoted after each stage and additions take
# power, so stages of large tiles are as deep as shared memory allows with two of them.
_TWO_TERMS_IN_PLANES = (
    WgmmaPlan(2, 128, 24, 2), WgmmaPlan(2, 112, 24, 2), WgmmaPlan(2, 96, 24, 2),
    WgmmaPlan(2, 64, 16, 4), WgmmaPlan(1, 64, 16, 4, k_warpgroups=2),
)  # fmt: skip


@cache
def wgmma_tiles(precision: Precision, storage: Storage) -> tuple[WgmmaPlan, ...]:
    """List the tiles for a precision, the largest first; k_major follows from the operand."""
    # A stage of narrower operands holds more k in the same bytes; fp32 pairs do not shrink.
    deeper = 1 if storage == "fp32" else 4 // precision.operand.bytes
    tiles: tuple[WgmmaPlan, ...] = _ONE_TERM if precision.terms == 1 else _TWO_TERMS
    if precision.terms == 1 and (precision.operand.name == "tf32" or storage == "fp32"):
        tiles = (*tiles, *_BETWEEN)
    if precision.terms > 1 and storage == "planar":
        tiles = _TWO_TERMS_IN_PLANES
    if precision.terms > 1 and storage == "fp32" and precision.scaled:
        tiles = _TWO_TERMS_SCALED
    return tuple(replace(x, block_k=deeper * x.block_k, storage=storage) for x in tiles)


def covering_tiles(precision: Precision, storage: Storage) -> tuple[WgmmaPlan, ...]:
    """List the tiles that only a triangle of one tile has, with both operands in planes."""
    if storage != "planar" or (precision.terms == 1 and precision.operand.name == "tf32"):
        return ()
    deeper = 4 // precision.operand.bytes
    tiles = (80, 24, 2), (80, 32, 3), (112, 32, 3)
    return tuple(
        WgmmaPlan(2, columns, deeper * k, stages, storage=storage)
        for columns, k, stages in (tiles[:1] if precision.terms > 1 else tiles[1:])
    )


def in_planes(plan: WgmmaPlan, precision: Precision) -> WgmmaPlan:
    """Return the same tile with both operands in planes."""
    if plan.storage == "planar":
        return plan

    def tile(x: WgmmaPlan) -> tuple[int, int, int]:
        return x.m_warpgroups, x.block_n, x.k_warpgroups

    found = (x for x in wgmma_tiles(precision, "planar") if tile(x) == tile(plan))
    same = next(found, plan)
    whole = replace(plan, storage="planar", k_major=False, cluster=1)
    return replace(whole, block_k=same.block_k, stages=same.stages)


CLUSTERS = {2: 1.0, 3: 0.87, 4: 0.91, 5: 0.84, 6: 0.69, 8: 0.91}
"""Blocks of a cluster that share the k of a tile, and the fraction of the multiprocessors that such
clusters fill, whose blocks share a GPC: on an H200 38 clusters of 3, 30 of 4, 22 of 5 and 15 of 8
run together; 40 of 3 and 18 of 6 do not."""
_CLUSTERED_STAGES = 4
"""Fewest stages of a cluster's blocks: with two a tile is slower than without a cluster."""


@lru_cache(maxsize=4096)
def with_cluster(plan: WgmmaPlan, precision: Precision, blocks: int) -> WgmmaPlan | None:
    """Return the plan with the k of a tile cut among a cluster, None where none is legal.

    What its blocks receive takes shared memory from stages; short slices need fewer of those.
    """
    for stages in range(plan.stages, _CLUSTERED_STAGES - 1, -plan.k_warpgroups):
        one = replace(plan, cluster=blocks, stages=stages)
        if is_legal(check_wgmma_plan, one, precision, arch_for(HOPPER)):
            return one
    return None


_DEEP_STAGES, _MAX_DEEP_COLUMNS = 4, 80
"""Most stages of twice the k, and the widest tiles whose shared memory holds so many of them."""
_FEWER_STAGES = 3
"""Stages of 128 m-major rows that are rounded to 16 bits as they are read."""


@lru_cache(maxsize=4096)
def with_rounded_rows(plan: WgmmaPlan, precision: Precision) -> WgmmaPlan:
    """Return the plan with the stages of a row operand that is rounded to 16 bits as it is read.

    Its columns take half as many bytes as at tf32. 64 k-major rows have stages of twice the k, so
    that memory reads pieces of 512 bytes. With 128 m-major rows a block has no more in flight than
    at tf32: otherwise multiprocessors near memory take its rate from the others, and the last block
    ends later.
    """
    rounds = plan.storage == "fp32" and precision.terms == 1 and precision.operand.bytes == 2
    if not rounds or plan.triangle:
        return plan
    if plan.m_warpgroups == 2:
        return plan if plan.k_major else replace(plan, stages=min(plan.stages, _FEWER_STAGES))
    if not plan.k_major:
        return plan
    stages = _DEEP_STAGES - (plan.block_n > _MAX_DEEP_COLUMNS)
    deep = replace(plan, block_k=2 * plan.block_k, stages=stages)
    fits = is_legal(check_wgmma_plan, deep, precision, arch_for(HOPPER))
    return deep if fits and (plan.cluster == 1 or stages >= _CLUSTERED_STAGES) else plan


_MAX_OVERLAPPED = 8
"""Tiles a block beyond which an overlapped epilogue is as fast as a ping-pong, and stays."""


def with_ping_pong(
    plan: WgmmaPlan,
    precision: Precision,
    k: int,
    tiles: int,
    sm_count: int,
    *,
    overlaps: bool = False,
) -> WgmmaPlan:
    """Return the plan with a ping-pong of whole tiles, where that hides their stores.

    One warpgroup stores while the other multiplies, which takes blocks of several ``tiles`` and a
    ring that holds all ``k`` of one. A promoted mainloop leaves no registers for an overlapped
    epilogue. At one term stores take no longer than MMAs and loads, so the ring also needs a third
    of its stages for the next tile: with less a warpgroup waits for loads. At two terms the k
    of a stage is the tile's or one that leaves more of the ring free. Scaled stages of more than 96
    columns are loaded, or loaded again, under no MMAs, and lose where they fill the ring.
    """
    if plan.fused_pack or plan.m_warpgroups == 1 or plan.triangle or tiles <= sm_count:
        return plan
    if precision.terms == 1:
        one = replace(plan, ping_pong=True)
        fits = 3 * -(-k // plan.block_k) <= 2 * plan.stages
        fits = fits and not (overlaps and tiles > _MAX_OVERLAPPED * sm_count)
        return (
            one if fits and is_legal(check_wgmma_plan, one, precision, arch_for(HOPPER)) else plan
        )
    unhidden = precision.scaled and plan.storage == "fp32" and plan.block_n > 96
    if unhidden and k > plan.block_k * (plan.stages - 1):
        return plan
    found = []
    for block_k in (plan.block_k, 2 * precision.operand.mma_k):
        stages = max(plan.stages * plan.block_k // block_k, -(-k // block_k))
        one = replace(plan, block_k=block_k, stages=stages, ping_pong=True)
        if is_legal(check_wgmma_plan, one, precision, arch_for(HOPPER)):
            found.append(one)
    return max(found, key=lambda x: x.block_k * (x.stages - -(-k // x.block_k)), default=plan)
