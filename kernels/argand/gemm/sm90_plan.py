"""Plans of the wgmma family (Hopper) and their legality; `gemm.sm90_source` has their source.

Nothing here needs a GPU or CuPy. The kernel computes Z = X Y^T: X is the row operand, interleaved
or in planes, Y the column operand, in planes. The choice decides which of A and B is X.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from argand.device import Arch
from argand.gemm.sm90_epilogue import Epilogue
from argand.precision import Precision
from argand.runtime.plan import MMA_DEPTH, TARGET, PlanError, require_precision

Storage = Literal["fp32", "half", "planar"]
"""Storage of the row operand: interleaved pairs of fp32 or of 16 bits, or planes."""

WARP = 32
WARPGROUP = 4 * WARP
_WARPGROUP_ROWS = 64
_SWIZZLE_BYTES = 128
_ALIGNMENT = 1024
STORE_SIDE = 16
"""Rows and columns of a box of a TMA store."""
_STORE_BYTES = STORE_SIDE * _SWIZZLE_BYTES
WORK_QUEUE_BYTES = 4 * 64
"""Four slots in which the scheduling thread writes what the warps compute next."""
SPILL_INTERVAL = 64
"""Stages from one accumulator spill to the next; the first and the last stretch are half as long to
half as long again."""
SECTOR_COLUMNS = 4
"""Complex numbers of a sector of L2."""
_MORE_TILES, _SHORT_K = 1.1, 512
"""Tiles over those that share no columns, and k, up to which sharing pays."""
MOST_FUSED_COLUMNS = 128
"""Columns of a tile up to which the warps that pack beside it have registers enough."""
SPILL_COLUMNS = 16
"""Columns of accumulators that spill together."""


@dataclass(frozen=True)
class WgmmaPlan:
    """One kernel of the family.

    A block of `consumers` warpgroups and one producer warpgroup computes ``block_m x block_n`` of
    Z, 64 rows for each of ``consumer_warpgroups``, in k-tiles of ``depth``, with ``stages`` of them
    in shared memory. ``k_warpgroups`` share the k of the same rows. Split operands promote
    their accumulators after each stage, others never. ``k_major`` says whether k is an interleaved
    row operand's contiguous axis. ``prescaled`` says that a scaled precision's operands came as
    16-bit numbers, which need no scaling. ``tma_epilogue`` stores results by TMA through shared
    memory; then ``out_m_major`` says whether rows are their contiguous axis. The epilogue overlaps
    ``overlapped_stages`` of the next tile's mainloop. ``fused_pack`` packs the column operand,
    interleaved and k-major, in idle warps while the consumers multiply. ``triangle`` computes the
    tiles of the lower triangle alone, which are square; ``conjugate_y`` multiplies by the conjugate
    of the column operand, whose planes are those of the row operand. ``power`` stores squared
    magnitudes. ``odd_pitch`` says that lines
    of fp32 pairs are an odd number of elements apart, ``odd_batches`` that products are too. A
    launch chooses ``epilogue`` and ``mirror``: what is below a triangle's diagonal is stored above
    it, too, and the diagonal is real. Neighbouring tiles have ``shared_columns``, so that each
    stores whole sectors where rows of results begin anywhere. The warpgroups of a ``ping_pong``
    multiply all k of a tile in turn, so that one stores while the other multiplies; the ring holds
    the k of a tile. Those of other plans of split operands multiply each k-tile in turn.
    """

    consumer_warpgroups: int
    block_n: int
    depth: int
    stages: int
    storage: Storage = "fp32"
    k_major: bool = False
    half_output: bool = False
    prescaled: bool = False
    tma_epilogue: bool = False
    out_m_major: bool = False
    fused_pack: bool = False
    overlapped_stages: int = 0
    triangle: bool = False
    conjugate_y: bool = False
    power: bool = False
    epilogue: Epilogue = "combine"
    odd_pitch: bool = False
    odd_batches: bool = False
    mirror: bool = False
    shared_columns: int = 0
    k_warpgroups: int = 1
    ping_pong: bool = False

    @property
    def block_m(self) -> int:
        """Rows of Z that a block computes."""
        return _WARPGROUP_ROWS * self.consumer_warpgroups

    @property
    def columns_apart(self) -> int:
        """Columns from one tile to the next."""
        return self.block_n - self.shared_columns

    def with_shared_columns(self, columns: int, k: int) -> WgmmaPlan:
        """Return the plan with shared columns, where rows of results are many tiles of a short k.

        Parts of sectors halve the rate of stores; computing four columns twice takes less.
        """
        shared = replace(self, shared_columns=SECTOR_COLUMNS)
        tiles, more = -(-columns // self.block_n), -(-columns // shared.columns_apart)
        pays = tiles > 1 and more <= _MORE_TILES * tiles and k <= _SHORT_K
        other = self.fused_pack or self.half_output or self.power or self.triangle
        return shared if pays and not other else self

    @property
    def consumers(self) -> int:
        """Consumer warpgroups of a block."""
        return self.consumer_warpgroups * self.k_warpgroups

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return WARPGROUP * (self.consumers + 1)

    @property
    def adjacent_rows(self) -> bool:
        """Whether a lane of a direct epilogue holds adjacent rows of Z."""
        return self.storage != "planar" and not self.k_major

    def x_element_bytes(self, precision: Precision) -> int:
        """Return the bytes of a complex number of the row operand."""
        return {"half": 4, "fp32": 8, "planar": precision.planar_bytes}[self.storage]

    def x_swizzle_elements(self, precision: Precision) -> int:
        """Return the complex numbers of an interleaved row operand in a swizzled row."""
        return _SWIZZLE_BYTES // self.x_element_bytes(precision)

    def box_depth(self, precision: Precision) -> int:
        """Return the k of a box of planes: a stage's, or mma_k where a swizzle holds no more."""
        whole = self.depth * precision.planar_bytes // 2 <= _SWIZZLE_BYTES
        return self.depth if whole else MMA_DEPTH[precision.operand.name]

    def box_row_bytes(self, precision: Precision) -> int:
        """Return the bytes of one row of a box of planes, all terms."""
        return self.box_depth(precision) * precision.planar_bytes // 2

    def spills_accumulators(self, precision: Precision, k: int) -> bool:
        """Return whether accumulators spill: those of split operands, where k is long.

        Warpgroups that share k would spill to the same memory, so such a k is not theirs.
        """
        return self.k_warpgroups == 1 and self._exceeds_spill_interval(precision, k)

    def takes(self, precision: Precision, k: int) -> bool:
        """Return whether accumulators of a k stay short enough, or spill."""
        return self.k_warpgroups == 1 or not self._exceeds_spill_interval(precision, k)

    def _exceeds_spill_interval(self, precision: Precision, k: int) -> bool:
        """Return whether accumulators of split operands are too long without a spill."""
        each = -(-k // (self.depth * self.k_warpgroups))
        return precision.terms > 1 and each > SPILL_INTERVAL * 3 // 2

    def can_overlap_epilogue(self, precision: Precision) -> bool:
        """Return whether registers suffice to overlap the epilogue with the next mainloop."""
        one_term = precision.operand.name == "tf32" and precision.terms == 1
        return one_term and not self.k_major and self.block_n == 128 and not self.odd_pitch

    def stage_bytes(self, precision: Precision) -> int:
        """Return the bytes of shared memory of one stage."""
        columns = self.block_n * precision.planar_bytes
        found = self.depth * (self.block_m * self.x_element_bytes(precision) + columns)
        if self.odd_pitch:  # of odd lines, one element further, another swizzled row each
            found += (self.block_m if self.k_major else self.depth) // 2 * _SWIZZLE_BYTES
        return found

    def shared_bytes(self, precision: Precision) -> int:
        """Return the bytes of dynamic shared memory of a block.

        They hold the stages with two barriers each, boxes of results, the work queue, and the
        alignment of all.
        """
        staging = 4 * self.consumer_warpgroups * 2 * _STORE_BYTES if self.tma_epilogue else 0
        queue = WORK_QUEUE_BYTES + (16 if self.fused_pack or self.k_warpgroups > 1 else 0)
        exchange = 8 * self.block_m * self.block_n * (self.k_warpgroups - 1)
        stages = self.stages * (self.stage_bytes(precision) + 16)
        return stages + staging + exchange + queue + _ALIGNMENT

    def name(self) -> str:
        """Return the plan in words, for a record's algorithm column."""
        tile = f"{self.block_m}x{self.block_n}x{self.depth} {self.stages} stages"
        tile += f", {self.k_warpgroups} warpgroups along k" * (self.k_warpgroups > 1)
        return tile + ", ping-pong" * self.ping_pong


def check_wgmma_plan(plan: WgmmaPlan, precision: Precision, arch: Arch) -> None:
    """Raise PlanError, with what is allowed, where a plan cannot run."""
    require_precision(precision, arch)
    operand = precision.operand.name
    if arch.target != TARGET:
        raise PlanError(f"wgmma needs {TARGET}, got {arch.target}")
    if operand not in MMA_DEPTH:
        raise PlanError(f"operand must be one of {list(MMA_DEPTH)}, got {operand}")
    row_bytes, span = plan.box_row_bytes(precision), plan.x_swizzle_elements(precision)
    rules = [
        (plan.consumer_warpgroups in (1, 2), "warpgroups must be 1 or 2"),
        (plan.block_n % 8 == 0 and 8 <= plan.block_n <= 256, "block_n must be 8, 16, ... 256"),
        (plan.depth % MMA_DEPTH[operand] == 0, f"depth must be a multiple of {MMA_DEPTH[operand]}"),
        (row_bytes in (32, 64, _SWIZZLE_BYTES),
         "a row of a box must fill a swizzle of 32, 64 or 128 bytes"),
        (plan.box_depth(precision) == plan.depth
         or (plan.storage == "planar" and precision.terms == 2),
         "a stage deeper than a swizzle of 128 bytes is of split operands in planes"),
        (plan.storage == "planar" or not plan.k_major or plan.depth % span == 0,
         f"depth must be a multiple of {span} where k is contiguous"),
        (plan.stages >= 2, "stages must be at least 2, one to fill and one to read"),
        (plan.block_n * row_bytes % _ALIGNMENT == 0, "a plane must begin where a swizzle does"),
        (plan.k_warpgroups == 1 or (plan.k_warpgroups == 2 and plan.consumer_warpgroups == 1
                                    and plan.stages % 2 == 0 and precision.terms == 2
                                    and plan.box_depth(precision) == plan.depth),
         "two warpgroups share the k of 64 rows of split operands, each every other stage"),
        (not plan.ping_pong or (not plan.overlapped_stages and plan.consumer_warpgroups == 2
                                and not plan.triangle),
         "two warpgroups multiply tiles in turn, without an overlapped epilogue or a triangle"),
        (plan.storage != "half" or (precision.operand.bytes == 2 and precision.terms == 1),
         "pairs of 16 bits are operands of one term in a 16-bit format"),
        (plan.storage == "planar" or plan.prescaled or not precision.scaled
         or (plan.storage == "fp32" and precision.terms > 1),
         "operands that are to be scaled are packed beforehand, or promoted where they are scaled"),
        (not plan.tma_epilogue or (not (plan.half_output or plan.power)
                                   and plan.block_n % STORE_SIDE == 0),
         f"staged results are complex64 in boxes of {STORE_SIDE} columns"),
        (not plan.tma_epilogue or precision.terms == 1
         or plan.block_n < (96 if precision.scaled and plan.storage == "fp32" else 128),
         "128 columns of split operands, and 96 that are scaled in each stage, leave no registers "
         "to stage results"),
        (precision.terms == 1 or plan.block_n % SPILL_COLUMNS == 0,
         f"accumulators of split operands spill by {SPILL_COLUMNS} columns"),
        (not plan.overlapped_stages or (plan.tma_epilogue and plan.overlapped_stages < plan.stages),
         "overlapped stages, fewer than the stages, are for TMA epilogues"),
        (not plan.tma_epilogue or plan.epilogue in ("combine", "descale"),
         "a TMA epilogue has one way to store"),
        (plan.epilogue != "descale_columns" or plan.adjacent_rows,
         "contiguous rows of results are stored from lanes that hold adjacent rows"),
        (not plan.overlapped_stages or plan.can_overlap_epilogue(precision),
         "overlapped stages are for one term of tf32, tiles of 128 columns and rows that are "
         "contiguous or in planes"),
        (not plan.fused_pack or plan.storage in ("fp32", "planar"),
         "fused packing needs a row operand of fp32 pairs or in planes"),
        (not plan.fused_pack or (operand == "tf32" and precision.terms == 1),
         "fused packing is for one term of tf32"),
        (not plan.fused_pack or plan.block_n <= MOST_FUSED_COLUMNS,
         f"fused packing is for tiles of up to {MOST_FUSED_COLUMNS} columns"),
        (not plan.shared_columns or (plan.epilogue == "descale_shifted_rows"
                                     and plan.shared_columns == SECTOR_COLUMNS
                                     and not (plan.fused_pack or plan.half_output or plan.power
                                              or plan.triangle)),
         "tiles share the columns of a sector where rows of complex64 begin anywhere in one"),
        (not plan.half_output or precision.operand.bytes == 2,
         "16-bit results need a 16-bit operand format"),
        (not plan.power or not (plan.half_output or plan.triangle),
         "squared magnitudes are fp32, of all of a product"),
        (not plan.power or plan.epilogue != "descale",
         "squared magnitudes at any strides are combined: to descale alone would spill"),
        (not plan.triangle or (plan.block_m == plan.block_n and not plan.fused_pack),
         "tiles of a triangle are square, and its operands packed beforehand"),
        (not plan.mirror or (plan.triangle and not (plan.out_m_major or plan.overlapped_stages)),
         "mirrored tiles are of a triangle with contiguous columns, and overlap no mainloop"),
        (not plan.mirror or plan.tma_epilogue
         or plan.epilogue in ("descale_rows", "descale_shifted_rows"),
         "mirrored tiles are stored by TMA or in rows"),
        (not plan.mirror or plan.epilogue != "combine",
         "mirrored tiles are added to no C: both take the registers"),
        (not plan.conjugate_y or plan.storage == "planar",
         "planes that are those of the row operand need one in planes"),
        (not plan.overlapped_stages or plan.epilogue == "descale",
         "an overlapped epilogue descales alone"),
        (not plan.odd_pitch or (plan.storage == "fp32" and not plan.tma_epilogue
                                and plan.depth % 16 == 0),
         "odd pitches are of fp32 pairs, a depth of multiples of 16 and no TMA epilogue"),
        (not plan.odd_batches or (plan.odd_pitch and (plan.k_major or not plan.fused_pack)),
         "odd batches are of an odd pitch; their k is exchanged by the pack kernel alone"),
        (plan.shared_bytes(precision) <= arch.shared_bytes,
         f"a block may use {arch.shared_bytes} bytes of shared memory on {arch.name}, "
         f"this one takes {plan.shared_bytes(precision)}"),
    ]  # fmt: skip
    for holds, rule in rules:
        if not holds:
            raise PlanError(f"{rule}: {plan}")


def is_legal(plan: WgmmaPlan, precision: Precision, arch: Arch) -> bool:
    """Return whether a plan can run."""
    try:
        check_wgmma_plan(plan, precision, arch)
    except PlanError:
        return False
    return True
