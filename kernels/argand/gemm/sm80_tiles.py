"""Tiles of the mma.sync family. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import replace

from argand.device import HOPPER, Arch
from argand.gemm.sm80_plan import MmaPlan
from argand.precision import Precision

# Tiles by number of terms, the largest first. With two terms and a second set of accumulators the
# registers of a thread (255) hold 32 x 32 of C a warp, with one term 2048 elements.
_ONE_TERM = (
    MmaPlan(128, 128, 32, 4, 2, 3),
    MmaPlan(128, 128, 16, 4, 2, 4),
    MmaPlan(64, 64, 16, 2, 2, 4),
    MmaPlan(64, 32, 32, 2, 2, 3),
    MmaPlan(16, 128, 16, 1, 4, 4),
    MmaPlan(128, 16, 16, 4, 1, 4),
    MmaPlan(16, 64, 32, 1, 4, 3),
    MmaPlan(64, 16, 32, 4, 1, 3),
    MmaPlan(32, 32, 32, 2, 2, 3),
    MmaPlan(32, 32, 64, 2, 1, 4, warps_k=4),
    MmaPlan(32, 16, 64, 2, 2, 4, warps_k=4),
    MmaPlan(16, 16, 64, 1, 2, 4, warps_k=4),
)
_TWO_TERMS = (
    MmaPlan(128, 64, 32, 4, 2, 3, 32),
    MmaPlan(128, 64, 16, 4, 2, 4, 32),
    MmaPlan(64, 64, 16, 2, 2, 4, 32),
    MmaPlan(64, 32, 32, 2, 2, 3, 32),
    MmaPlan(16, 128, 16, 1, 4, 4, 32),
    MmaPlan(16, 64, 32, 1, 4, 3, 32),
    MmaPlan(64, 16, 32, 4, 1, 3, 32),
    MmaPlan(32, 32, 32, 2, 2, 3, 32),
    MmaPlan(32, 32, 64, 2, 1, 4, 64, warps_k=4),
    MmaPlan(32, 16, 64, 2, 2, 4, 64, warps_k=4),
    MmaPlan(16, 16, 64, 1, 2, 4, 64, warps_k=4),
)


# As 64 x 32 a warp tf32 is 7% faster than as 32 x 64; the 16-bit formats would spill.
_TF32_LARGEST = MmaPlan(128, 128, 32, 2, 4, 3)
# For few k: with two stages a multiprocessor holds more blocks, whose stores hide loads of others.
_TF32_SHORT = (MmaPlan(64, 32, 32, 2, 2, 2), MmaPlan(32, 64, 32, 2, 2, 3))


def mma_tiles(precision: Precision, arch: Arch) -> list[MmaPlan]:
    """List the tiles, with as many stages as the architecture's shared memory holds."""
    found: dict[MmaPlan, None] = {}
    for plan in _tiles(precision):
        # A k-tile is at least one MMA of each group of warps.
        block_k, mma_k = max(plan.block_k, precision.operand.mma_k), precision.operand.mma_k
        plan = replace(plan, block_k=block_k, warps_k=min(plan.warps_k, block_k // mma_k))
        plan = within_registers(plan, precision, arch)
        while _largest_layout(plan).shared_bytes > arch.shared_bytes and plan.stages > 2:
            plan = replace(plan, stages=plan.stages - 1)
        if _largest_layout(plan).shared_bytes <= arch.shared_bytes:
            found[plan] = None
    return [*found]


def within_registers(plan: MmaPlan, precision: Precision, arch: Arch) -> MmaPlan:
    """Return the tile with half of C a warp, or with half of its k-tile, where all of it spills.

    A warp is full at 64 x 32 of C with one term and at 32 x 32 with two. Full warps spill on
    architectures after Hopper, and on Hopper at two 16-bit terms: in triangles whose operands both
    have k as their slow axis, and by long k-tiles where a cluster cuts a k along which B lies.
    """
    elements = plan.block_m // plan.warps_m * (plan.block_n // plan.warps_n)
    if elements * precision.terms < _FULL_WARP:
        return plan
    if precision.terms == 1:
        return replace(plan, block_n=64, warps_m=4, warps_n=2) if arch.sm > HOPPER else plan
    on_hopper = arch.sm == HOPPER and precision.operand.name != "tf32"
    by_columns = plan.triangle and not (plan.a_k_major or plan.b_k_major)
    if arch.sm > HOPPER or (on_hopper and by_columns):
        return replace(plan, block_m=64, warps_m=4)
    if on_hopper and plan.split_k_slices > 1 and plan.b_k_major:
        return replace(plan, block_k=16, stages=4)
    return plan


_MANY_BLOCKS, _SMALL_TILE = 5, 1024
"""Blocks that run together, and elements of C of their tiles."""


def with_many_blocks(plan: MmaPlan, precision: Precision, arch: Arch, k: int) -> MmaPlan:
    """Return the tile with registers for five blocks where a short k leaves memory for them.

    A small tile of four warps then has 92 registers a thread in place of 98, without spills: at
    tf32 11 x (90 x 1067 x 35) takes 13.7 us in place of 15.1 on an H200, 9174 x 105 x 58 13.9 in
    place of 15.3. Where memory holds four blocks, it takes 2% longer.
    """
    small = plan.threads == 128 and plan.block_m * plan.block_n <= _SMALL_TILE
    whole = plan.slices == 1 and not plan.triangle
    plain = precision.terms == 1 and not precision.scaled and arch.sm == HOPPER
    fits = arch.resident_blocks(plan.launched_bytes(k)) >= _MANY_BLOCKS
    if small and whole and plain and fits:
        return replace(plan, min_blocks=_MANY_BLOCKS)
    return plan


_FULL_WARP = 2048
"""Elements of C, times terms, whose operands and accumulators fill the registers of a warp."""


def _tiles(precision: Precision) -> tuple[MmaPlan, ...]:
    if precision.terms > 1:
        return _TWO_TERMS
    if precision.operand.name == "tf32":
        return (_TF32_LARGEST, *_ONE_TERM[1:], *_TF32_SHORT)
    return _ONE_TERM


def _largest_layout(plan: MmaPlan) -> MmaPlan:
    return replace(plan, a_k_major=True, b_k_major=True)
