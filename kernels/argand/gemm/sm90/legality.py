"""Legality of plans of the wgmma family (Hopper): rules with their reasons.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from argand.device import Arch
from argand.gemm.sm90.plan import (
    ALIGNMENT,
    MAX_FUSED_COLUMNS,
    SECTOR_COLUMNS,
    STORE_BOX_SIDE,
    SWIZZLE_BYTES,
    WIDEST_IN_PLACE,
    WgmmaPlan,
)
from argand.multiprocessor import PORTABLE_CLUSTER
from argand.precision import Precision
from argand.runtime.plan import (
    MMA_FORMATS,
    WGMMA_TARGET,
    PlanError,
    Rule,
    check_rules,
    require_precision,
)


def check_wgmma_plan(plan: WgmmaPlan, precision: Precision, arch: Arch) -> None:
    """Raise PlanError, with what is allowed, where a plan cannot run."""
    require_precision(precision, arch)
    operand = precision.operand.name
    if arch.target != WGMMA_TARGET:
        raise PlanError(f"wgmma needs {WGMMA_TARGET}, got {arch.target}")
    if operand not in MMA_FORMATS:
        raise PlanError(f"operand must be one of {list(MMA_FORMATS)}, got {operand}")
    check_rules(
        plan,
        *_of_tiles(plan, precision),
        *_of_operands(plan, precision),
        *_of_stores(plan, precision),
        *_of_triangles(plan),
        (plan.shared_bytes(precision) <= arch.shared_bytes,
         f"a block may use {arch.shared_bytes} bytes of shared memory on {arch.name}, "
         f"this one takes {plan.shared_bytes(precision)}"),
    )  # fmt: skip


def _of_tiles(plan: WgmmaPlan, precision: Precision) -> list[Rule]:
    """Return the rules of a tile, of its stages and of the warpgroups that multiply it."""
    mma_k, row_bytes = precision.operand.mma_k, plan.box_row_bytes(precision)
    span, whole_box = plan.x_swizzle_elements(precision), plan.box_k(precision) == plan.block_k
    return [
        (plan.m_warpgroups in (1, 2), "m_warpgroups must be 1 or 2"),
        (plan.block_n % 8 == 0 and 8 <= plan.block_n <= 256, "block_n must be 8, 16, ... 256"),
        (plan.block_k % mma_k == 0, f"block_k must be a multiple of {mma_k}"),
        (row_bytes in (32, 64, SWIZZLE_BYTES),
         "a row of a box must fill a swizzle of 32, 64 or 128 bytes"),
        (whole_box or (plan.storage == "planar" and precision.terms == 2),
         "a stage deeper than a swizzle of 128 bytes is of split operands in planes"),
        (plan.storage == "planar" or not plan.k_major or plan.block_k % span == 0,
         f"block_k must be a multiple of {span} where k is contiguous"),
        (plan.stages >= 2, "stages must be at least 2, one to fill and one to read"),
        # A swizzle of eight rows repeats in planes of eights of columns, however narrow it is.
        (2 * plan.block_n * row_bytes % ALIGNMENT == 0, "a stage must begin where a swizzle does"),
        (plan.k_warpgroups == 1 or (plan.k_warpgroups == 2 and plan.m_warpgroups == 1
                                    and plan.stages % 2 == 0 and precision.terms == 2
                                    and whole_box),
         "two warpgroups share the k of 64 rows of split operands, each every other stage"),
        (not plan.ping_pong or (not plan.overlapped_stages and plan.m_warpgroups == 2
                                and not plan.triangle),
         "a ping-pong is of two warpgroups, without an overlapped epilogue or a triangle"),
    ]  # fmt: skip


def _of_operands(plan: WgmmaPlan, precision: Precision) -> list[Rule]:
    """Return the rules of what lies in memory as the operands do, or is packed."""
    return [
        (plan.storage != "half" or (precision.operand.bytes == 2 and precision.terms == 1),
         "pairs of 16 bits are operands of one term in a 16-bit format"),
        (plan.storage == "planar" or plan.prescaled or not precision.scaled
         or (plan.storage == "fp32" and precision.terms > 1),
         "operands that are to be scaled are packed beforehand, or promoted where they are scaled"),
        (not plan.fused_pack or plan.storage in ("fp32", "planar"),
         "fused packing needs a row operand of fp32 pairs or in planes"),
        (not plan.fused_pack or (precision.operand.name == "tf32" and precision.terms == 1),
         "fused packing is for one term of tf32"),
        (not plan.fused_pack or plan.block_n <= MAX_FUSED_COLUMNS,
         f"fused packing is for tiles of up to {MAX_FUSED_COLUMNS} columns"),
        (not plan.conjugate_y or plan.storage == "planar",
         "planes that are those of the row operand need one in planes"),
        (not plan.odd_pitch or (plan.storage == "fp32" and not plan.tma_epilogue
                                and plan.block_k % 16 == 0),
         "odd pitches are of fp32 pairs, a block_k of multiples of 16 and no TMA epilogue"),
        (not plan.odd_batches or (plan.odd_pitch and (plan.k_major or not plan.fused_pack)),
         "odd batches are of an odd pitch; their k is exchanged by the pack kernel alone"),
    ]  # fmt: skip


def _of_stores(plan: WgmmaPlan, precision: Precision) -> list[Rule]:
    """Return the rules of results: their format, their epilogue and what it overlaps."""
    narrow = plan.half_output or plan.power
    scaled_here = precision.scaled and plan.storage == "fp32"
    return [
        (not plan.tma_epilogue or (not narrow and plan.block_n % STORE_BOX_SIDE == 0),
         f"a TMA epilogue stores complex64 in boxes of {STORE_BOX_SIDE} columns"),
        (not plan.tma_epilogue or precision.terms == 1
         or plan.block_n < (96 if scaled_here else 128),
         "128 columns of split operands, and 96 that are scaled in each stage, leave no registers "
         "for a TMA epilogue"),
        (not plan.tma_epilogue or plan.epilogue in ("combine", "descale"),
         "a TMA epilogue has one way to store"),
        (plan.epilogue != "descale_columns" or plan.adjacent_rows,
         "contiguous rows of results are stored from lanes that hold adjacent rows"),
        (not plan.overlapped_stages or (plan.tma_epilogue and plan.overlapped_stages < plan.stages),
         "overlapped stages, fewer than the stages, are for TMA epilogues"),
        (not plan.overlapped_stages or plan.can_overlap_epilogue(precision),
         "overlapped stages are for one term of tf32, tiles of 128 columns and rows that are "
         "contiguous or in planes"),
        (not plan.overlapped_stages or plan.epilogue == "descale",
         "an overlapped epilogue descales alone"),
        (not plan.shared_columns or (plan.epilogue == "descale_shifted_rows"
                                     and plan.shared_columns == SECTOR_COLUMNS
                                     and not (plan.fused_pack or narrow or plan.triangle)),
         "tiles share the columns of a sector where rows of complex64 begin anywhere in one"),
        (plan.cluster == 1 or (plan.cluster <= PORTABLE_CLUSTER
                               and 2 * plan.parts >= plan.cluster),
         f"a cluster has at most {PORTABLE_CLUSTER} blocks, of which half or more store equal "
         "parts of a tile, in groups of eight columns"),
        (plan.cluster == 1 or plan.m_warpgroups == 1,
         "a cluster shares tiles of 64 rows, because larger ones leave too few registers"),
        (plan.cluster == 1 or not (plan.tma_epilogue or plan.overlapped_stages or plan.ping_pong
                                   or plan.triangle or plan.fused_pack or plan.shared_columns),
         "blocks of a cluster store a part of one tile from registers"),
        (not plan.half_output or precision.operand.bytes == 2,
         "16-bit results need a 16-bit operand format"),
        (plan.epilogue != "descale" or not scaled_here or plan.block_n < WIDEST_IN_PLACE,
         f"{WIDEST_IN_PLACE} columns that are scaled in each stage are combined at any strides: to "
         "descale alone would spill"),
        (not plan.power or not (plan.half_output or plan.triangle),
         "squared magnitudes are fp32, of all of a product"),
        (not plan.power or plan.epilogue != "descale",
         "squared magnitudes at any strides are combined: to descale alone would spill"),
    ]  # fmt: skip


def _of_triangles(plan: WgmmaPlan) -> list[Rule]:
    """Return the rules of the tiles of a triangle and of their mirror images."""
    return [
        (not (plan.triangle and plan.fused_pack) or (plan.m_warpgroups == 2 and plan.conjugate_y),
         "fused packing of a triangle is for tiles of 128 rows, both operands in planes"),
        (not plan.mirror or (plan.triangle and not (plan.out_m_major or plan.overlapped_stages)),
         "mirrored tiles are of a triangle with contiguous columns, and overlap no mainloop"),
        (not plan.mirror or plan.tma_epilogue
         or plan.epilogue in ("descale_rows", "descale_shifted_rows"),
         "mirrored tiles are stored by TMA or in rows"),
        (not plan.mirror or plan.epilogue != "combine",
         "mirrored tiles are added to no C: both take the registers"),
        (not (plan.mirror and plan.half_output), "mirrored tiles are complex64"),
    ]  # fmt: skip
