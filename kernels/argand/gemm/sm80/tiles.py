"""Tiles of the mma.sync family. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache

from argand.device import HOPPER, Arch
from argand.gemm.sm80.legality import check_mma_plan, whole_passes
from argand.gemm.sm80.plan import FULL_WARP, SMALL_WARP, MmaPlan, holds_accumulators
from argand.gemm.sm80.slices import k_tiles_of
from argand.precision import Precision
from argand.runtime.plan import is_legal

# Tiles by number of terms, the largest first: block_m, block_n, block_k, warps along m and along n,
# stages, promotion interval. With two terms and a second set of accumulators the
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
    MmaPlan(32, 32, 32, 2, 2, 5, 32),
    MmaPlan(32, 32, 64, 2, 1, 4, 64, warps_k=4),
    MmaPlan(32, 16, 64, 2, 1, 4, 64, warps_k=4),
    MmaPlan(16, 16, 64, 1, 2, 4, 64, warps_k=4),
)


# As 64 x 32 a warp tf32 is faster than as 32 x 64; the 16-bit formats would spill.
_TF32_LARGEST = MmaPlan(128, 128, 32, 2, 4, 3)
# For few k: with two stages a multiprocessor holds more blocks, whose stores hide loads of others.
_ONE_TERM_SHORT = MmaPlan(64, 32, 32, 2, 2, 2), MmaPlan(32, 64, 32, 2, 2, 3)


@cache
def mma_tiles(precision: Precision, arch: Arch) -> tuple[MmaPlan, ...]:
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
    return tuple(found)


def one_tile_of(precision: Precision, arch: Arch, rows: int) -> tuple[MmaPlan, ...]:
    """List the tiles that only a triangle of ``rows`` rows takes.

    80 rows of two terms are slower than smaller tiles. At 16 bits, and before Hopper, registers for
    two blocks would spill. Where a warp has all of it, groups of warps share k.
    """
    terms, tf32 = precision.terms, precision.operand.name == "tf32"
    found = []
    if 32 < rows <= 48:
        found = [MmaPlan(48, 48, 32, 3, 2, 3, 32 if terms > 1 else 0)]
    if 64 < rows <= 80 and terms == 1 and not precision.scaled:
        blocks_per_sm = 2 if tf32 and arch.sm >= HOPPER else 1
        found = [MmaPlan(80, 80, 32, 5, 2, 3, blocks_per_sm=blocks_per_sm)]
    if arch.sm != HOPPER:
        return tuple(found)
    if rows <= 16:
        found.append(MmaPlan(16, 16, 64, 1, 1, 4, 64 if terms > 1 else 0, warps_k=4))
    elif rows <= 32:
        blocks_per_sm = 3 if tf32 and terms > 1 else 1
        promotion = 64 if terms > 1 else 0
        found.append(
            MmaPlan(32, 32, 64, 1, 1, 3, promotion, warps_k=4, blocks_per_sm=blocks_per_sm)
        )
    elif rows <= 48 and tf32 and terms == 1:
        found.append(MmaPlan(48, 48, 48, 1, 1, 3, warps_k=3))
    return tuple(found)


def within_registers(plan: MmaPlan, precision: Precision, arch: Arch) -> MmaPlan:
    """Return the tile with half of C a warp, or with half of its k-tile, where all of it spills.

    A warp is full at 64 x 32 of C with one term and at 32 x 32 with two. Full warps spill on
    architectures after Hopper; up to it by long k-tiles of 16 bits; and on Hopper at two 16-bit
    terms: in triangles whose operands both have k as their slow axis, and by long k-tiles where a
    cluster cuts a k along which B lies.
    """
    if plan.warp_elements * precision.terms < FULL_WARP:
        return plan
    if precision.terms == 1:
        if arch.sm > HOPPER:
            return replace(plan, block_n=64, warps_m=4, warps_n=2)
        if precision.operand.bytes == 2 and plan.block_k > 16:
            return replace(plan, block_k=16, stages=4)
        return plan
    on_hopper = arch.sm == HOPPER and precision.operand.name != "tf32"
    by_columns = plan.triangle and not (plan.a_k_major or plan.b_k_major)
    if arch.sm > HOPPER or (on_hopper and by_columns):
        return replace(plan, block_m=64, warps_m=4)
    if on_hopper and plan.cluster > 1 and plan.b_k_major:
        return replace(plan, block_k=16, stages=4)
    return plan


@lru_cache(maxsize=4096)
def in_layout(
    plan: MmaPlan, precision: Precision, arch: Arch, triangle: bool, a_k_major: bool,
    b_k_major: bool, vector: int,
) -> MmaPlan:  # fmt: skip
    """Return the plan in the operands' layout, with what its registers and copies then allow."""
    plan = replace(
        plan, triangle=triangle or plan.triangle,
        a_k_major=a_k_major, b_k_major=b_k_major, vector=vector,
    )  # fmt: skip
    plan = within_registers(plan, precision, arch)
    return plan if whole_passes(plan) else replace(plan, vector=1)


MAX_BLOCK_ABSMAX_K = 256
"""Largest k of a slice whose absmax each block finds itself; its stages then hold it all."""


def with_absmax(plan: MmaPlan, precision: Precision, arch: Arch, k: int) -> MmaPlan:
    """Return the plan with stages for a slice, where it scales and shared memory holds them."""
    num_k_tiles = k_tiles_of(plan, k)
    if not precision.scaled or -(-k // plan.slices) > MAX_BLOCK_ABSMAX_K:
        return plan
    # One stage more than a power of two, so that there is not a kernel for each k. Where k is cut
    # they also hold the accumulators that slices exchange, which may take more than a short k.
    held = 1 << (num_k_tiles - 1).bit_length()
    found = replace(plan, finds_absmax=True, stages=1 + held)
    while not holds_accumulators(found):
        held *= 2
        found = replace(found, stages=1 + held)
    return found if is_legal(check_mma_plan, found, precision, arch) else plan


def with_copies(plan: MmaPlan, precision: Precision, arch: Arch, k: int) -> MmaPlan:
    """Return the tile with the copies that suit its k, where operands need no scales.

    A k, or a slice of one that is cut, that fits the stages is copied at once: without copies in
    its loop over k a thread of a small tile has 79 registers in place of 92, so that a
    multiprocessor holds more blocks, and MMAs beyond a k that is not cut are left out. A longer one
    is copied between MMAs, which a warp would wait for
    (docs/experiments/2026-11-26-skinny-and-small-products.md). Older cards have no registers for
    that, nor have large warps of two terms; triangles of these were timed where k is cut.
    """
    if plan.whole_k or plan.copies_between:  # of another k, in an override
        plan = replace(plan, whole_k=0, copies_between=False)
    if precision.scaled:
        return plan
    k_tiles, elements = k_tiles_of(plan, k), plan.block_m * plan.block_n
    if k_tiles <= plan.stages and elements < _LARGE_TILE:
        mma_k = precision.operand.mma_k
        if not plan.cut:
            return replace(plan, whole_k=-(-k // mma_k) * mma_k)
        whole = replace(plan, whole_k=k_tiles * plan.block_k)
        # Sums that are promoted again spill beside what blocks send, where a warp has all of a
        # k-tile.
        spills = whole.promoted_again and plan.warps_k == 1
        if plan.grid_slices == 1 and not (plan.triangle or spills):
            return whole
    if plan.warps_k > 1:
        return plan
    small = 32 * elements // plan.threads <= SMALL_WARP
    timed = plan.slices > 1 or not plan.triangle
    fits = arch.sm == HOPPER and (precision.terms == 1 or (timed and small))
    return replace(plan, copies_between=True) if fits and k_tiles >= plan.stages else plan


_LARGE_TILE = 4096
"""Elements of C of a tile that has enough registers for its copies."""


def _tiles(precision: Precision) -> tuple[MmaPlan, ...]:
    if precision.terms > 1:
        return _TWO_TERMS
    largest = _TF32_LARGEST if precision.operand.name == "tf32" else _ONE_TERM[0]
    return (largest, *_ONE_TERM[1:], *_ONE_TERM_SHORT)


def _largest_layout(plan: MmaPlan) -> MmaPlan:
    return replace(plan, a_k_major=True, b_k_major=True)
