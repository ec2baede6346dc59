"""Legality of plans of the mma.sync family. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from argand.device import Arch
from argand.gemm.sm80.plan import (
    CLUSTER_SIZES,
    FULL_WARP,
    LARGEST_ONE_TILE,
    MAX_GRID_SLICES,
    MmaPlan,
    holds_accumulators,
)
from argand.multiprocessor import CLUSTER_SM, PORTABLE_CLUSTER
from argand.precision import Precision
from argand.runtime.plan import MMA_FORMATS, PlanError, Rule, check_rules, require_precision


def check_mma_plan(plan: MmaPlan, precision: Precision, arch: Arch) -> None:
    """Raise PlanError, with what is allowed, where a plan cannot run."""
    require_precision(precision, arch)
    if precision.operand.name not in MMA_FORMATS:
        raise PlanError(f"operand must be one of {list(MMA_FORMATS)}, got {precision.operand.name}")
    check_rules(
        plan, *_of_the_tile(plan, precision), *_of_triangles(plan), *_of_k(plan, precision, arch),
        *_of_shared_memory(plan, arch),
    )  # fmt: skip


def _of_the_tile(plan: MmaPlan, precision: Precision) -> list[Rule]:
    """Return the rules of a block's tile, its warps and its stages."""
    return [
        (plan.block_m % (16 * plan.warps_m) == 0, "block_m must be a multiple of 16 warps_m"),
        (plan.block_n % (8 * plan.warps_n) == 0, "block_n must be a multiple of 8 warps_n"),
        (not plan.finds_absmax or precision.scaled,
         "only a precision that scales finds the absmax of rows"),
        (not plan.finds_absmax or precision.terms > 1 or plan.warp_elements < FULL_WARP,
         f"a warp of {FULL_WARP} elements of one term spills where blocks find the absmax"),
        (plan.vector in (1, 2), "vector must be 1 or 2"),
        (plan.stages >= 2, "stages must be at least 2, one to fill and one to read"),
    ]  # fmt: skip


def _of_k(plan: MmaPlan, precision: Precision, arch: Arch) -> list[Rule]:
    """Return the rules of k-tiles, and of a k that warps or blocks share."""
    mma_k = precision.operand.mma_k
    return [
        (plan.block_k % (mma_k * plan.warps_k) == 0,
         f"block_k must be a multiple of {mma_k} (one instruction) for each of warps_k"),
        (plan.promotion_interval % plan.block_k == 0,
         "promotion_interval must be a multiple of block_k"),
        (not plan.whole_k or plan.grid_slices == 1,
         "stages hold all of a k that no clusters share"),
        (not (plan.whole_k or plan.copies_between) or not precision.scaled,
         "all of k at once, and copies between MMAs, are for operands without scales"),
        (not plan.copies_between or plan.warps_k == 1,
         "copies between MMAs are for a k that no warps share"),
        (plan.whole_k % (plan.block_k if plan.cut else mma_k) == 0
         and plan.whole_k <= plan.stages * plan.block_k,
         f"whole_k must be a multiple of {mma_k}, or of block_k where k is cut, that the stages "
         "hold"),
        (plan.cluster in CLUSTER_SIZES,
         f"cluster must be one of {list(CLUSTER_SIZES)} blocks, of which a cluster has at most "
         f"{PORTABLE_CLUSTER}"),
        (1 <= plan.grid_slices <= MAX_GRID_SLICES and not (plan.triangle and plan.grid_slices > 1),
         f"grid_slices must be 1 to {MAX_GRID_SLICES}, and 1 in triangles"),
        (plan.cluster == 1 or arch.sm >= CLUSTER_SM,
         f"clusters of blocks run from compute capability {CLUSTER_SM / 10} on"),
    ]  # fmt: skip


def _of_triangles(plan: MmaPlan) -> list[Rule]:
    """Return the rules of the tiles of a triangle and of their mirror images."""
    return [
        (not plan.triangle or plan.block_m == plan.block_n, "tiles of a triangle must be square"),
        (not plan.mirror or plan.triangle, "mirrored tiles are of a triangle"),
        (not plan.one_tile or (plan.triangle and plan.a_k_major == plan.b_k_major
                               and plan.block_m <= LARGEST_ONE_TILE),
         f"one tile is that of a triangle of up to {LARGEST_ONE_TILE} rows, whose rows and columns "
         "lie alike"),
        (plan.one_tile or not plan.one_warp, "a warp alone has a triangle of one tile"),
    ]  # fmt: skip


def _of_shared_memory(plan: MmaPlan, arch: Arch) -> list[Rule]:
    """Return the rules of what a block holds in shared memory, and of the copies to it."""
    static = 4 * (plan.block_m + plan.block_n) * plan.finds_absmax
    static += 16 * (plan.grid_slices > 1) + 8 * (plan.cluster > 1)
    return [
        # Half a warp reads 4 rows x 4 k: 16 different pairs of banks need a pitch of 4 mod 16.
        (all(x % 16 == 0 for x in (plan.block_m, plan.block_n, plan.block_k)),
         "block_m, block_n and block_k must be multiples of 16 (bank conflicts)"),
        (plan.shared_bytes + static <= arch.shared_bytes,
         f"a block may use {arch.shared_bytes} bytes of shared memory on {arch.name}, "
         f"this one takes {plan.shared_bytes + static}"),
        (holds_accumulators(plan),
         "stages must hold the accumulators of all groups of warps, where k is cut"),
        (whole_passes(plan), "a copy pass of the block must cover whole rows of a tile"),
    ]  # fmt: skip


def whole_passes(plan: MmaPlan) -> bool:
    """Return whether one copy of each thread fills whole rows, and whole copies fill a tile."""
    for rows, k_major in ((plan.block_m, plan.a_k_major), (plan.block_n, plan.b_k_major)):
        fast, slow = (plan.block_k, rows) if k_major else (rows, plan.block_k)
        chunks = fast // plan.vector
        if plan.threads % chunks or slow % (plan.threads // chunks):
            return False
    return True
