"""Plans of the wgmma family (Hopper). `gemm.sm90.legality` says which can run.

Nothing here needs a GPU or CuPy. The kernel computes Z = X Y^T: X is the row operand, interleaved
or in planes, Y the column operand, in planes. The choice decides which of A and B is X.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from argand.multiprocessor import SECTOR, WARPGROUP
from argand.precision import Precision

Storage = Literal["fp32", "half", "planar"]
"""Storage of the row operand: interleaved pairs of fp32 or of 16 bits, or planes."""
Epilogue = Literal[
    "combine", "descale", "descale_rows", "descale_shifted_rows", "descale_columns"
]  # fmt: skip
"""``Epilogue`` of gemm/sm90_plan.cuh: alpha x + beta C; or a descaled x alone, stored at any
strides, in whole vectors of rows, of rows that begin within one, or of columns."""
EPILOGUES: tuple[Epilogue, ...] = get_args(Epilogue)

WGMMA_M = 64
"""m of one wgmma instruction: rows of a tile of one warpgroup."""
SWIZZLE_BYTES = 128
ALIGNMENT = 1024
STORE_BOX_SIDE = 16
"""Rows and columns of a box of a TMA store."""
_STORE_BOX_BYTES = STORE_BOX_SIDE * SWIZZLE_BYTES
WORK_QUEUE_BYTES = 4 * 64
"""Four slots in which the scheduling thread writes what the warps compute next."""
SPILL_INTERVAL = 64
"""Stages from one accumulator spill to the next; the first and the last stretch are half as long to
half as long again."""
SECTOR_COLUMNS = SECTOR // 8
"""Complex numbers of a sector of L2."""
_MORE_TILES, _SHORT_K = 1.1, 512
"""Tiles over those that share no columns, and k, up to which sharing pays."""
MAX_FUSED_COLUMNS = 128
"""Columns of a tile up to which the warps that pack beside it have registers enough."""
WIDEST_IN_PLACE = 128
"""Columns of a tile beside a row operand scaled in each stage, which leave no register free."""
SPILL_COLUMNS = 16
"""Most columns of accumulators that spill together."""


@dataclass(frozen=True)
class WgmmaPlan:
    """One kernel of the family, of `consumers` warpgroups and one producer warpgroup a block.

    Attributes:
        m_warpgroups: consumer warpgroups along m, of 64 rows of a tile of Z each, so ``block_m``
            is 64 or 128. At two terms they promote their accumulators after each stage, and two
            issue their MMAs in turn.
        block_n: columns of a tile of Z.
        block_k: elements of k in a k-tile, which fills one stage of the ring.
        stages: stages of the ring in shared memory.
        storage: how the row operand X lies in global memory.
        k_major: k is the contiguous axis of an X that is read in place.
        half_output: results are pairs of 16 bits.
        prescaled: the operands of a scaled precision are 16-bit numbers, which need no scales.
        tma_epilogue: results are stored by TMA through shared memory.
        out_m_major: rows are the contiguous axis of such results.
        fused_pack: idle warps of the producer warpgroup pack Y, interleaved and k-major, while the
            consumers multiply.
        overlapped_stages: k-tiles of the next tile whose MMAs overlap the epilogue; 0: none do.
        triangle: only tiles of the lower triangle are computed: square ones, or one that covers it.
        conjugate_y: Y is conjugated, and its planes are those of X.
        power: results are squared magnitudes.
        epilogue: what the epilogue does; a launch chooses it (`sm90.epilogue_choice`).
        odd_pitch: lines of an X of fp32 pairs are an odd number of elements apart.
        odd_batches: matrices of such an X are an odd number of elements apart, too.
        mirror: results below the diagonal of a triangle are stored above it, too, conjugated, and
            the diagonal is real; a launch chooses it.
        shared_columns: columns that neighbouring tiles both compute, so that each stores whole
            sectors of L2 where rows of results begin anywhere.
        k_warpgroups: consumer warpgroups that share the k of the same rows.
        ping_pong: two consumer warpgroups multiply whole tiles in turn, so that one stores while
            the other multiplies. The ring then holds all k of a tile.
        cluster: blocks of a cluster, each of which computes a slice of the k of one tile and stores
            a part of its columns.
    """

    m_warpgroups: int
    block_n: int
    block_k: int
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
    cluster: int = 1

    @property
    def block_m(self) -> int:
        """Rows of Z that a block computes."""
        return WGMMA_M * self.m_warpgroups

    @property
    def spill_columns(self) -> int:
        """Columns of accumulators that spill together."""
        return SPILL_COLUMNS if self.block_n % SPILL_COLUMNS == 0 else SPILL_COLUMNS // 2

    def covers_triangle(self, rows: int) -> bool:
        """Return whether tiles cover a triangle of ``rows`` rows.

        Square ones do; a higher one does alone, where no square one of a warpgroup would.
        """
        alone = WGMMA_M < rows <= self.block_n < self.block_m
        return self.block_m == self.block_n or (alone and self.storage == "planar")

    @property
    def tile_stride_n(self) -> int:
        """Columns from one tile to the next."""
        return self.block_n - self.shared_columns

    def with_shared_columns(self, columns: int, k: int) -> WgmmaPlan:
        """Return the plan with shared columns, where rows of results are many tiles of a short k.

        Parts of sectors halve the rate of stores; computing four columns twice takes less.
        """
        shared = replace(self, shared_columns=SECTOR_COLUMNS)
        tiles, more = -(-columns // self.block_n), -(-columns // shared.tile_stride_n)
        pays = tiles > 1 and more <= _MORE_TILES * tiles and k <= _SHORT_K
        other = self.fused_pack or self.half_output or self.power or self.triangle
        other |= self.cluster > 1  # each block of which stores columns of its own
        return shared if pays and not other else self

    @property
    def consumers(self) -> int:
        """Consumer warpgroups of a block."""
        return self.m_warpgroups * self.k_warpgroups

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return WARPGROUP * (self.consumers + 1)

    @property
    def adjacent_rows(self) -> bool:
        """Whether a lane of a direct epilogue holds adjacent rows of Z."""
        return self.storage != "planar" and (not self.k_major or self.odd_pitch)

    def x_element_bytes(self, precision: Precision) -> int:
        """Return the bytes of a complex number of the row operand."""
        return {"half": 4, "fp32": 8, "planar": precision.planar_bytes}[self.storage]

    def x_swizzle_elements(self, precision: Precision) -> int:
        """Return the complex numbers of an interleaved row operand in a swizzled row."""
        return SWIZZLE_BYTES // self.x_element_bytes(precision)

    def box_k(self, precision: Precision) -> int:
        """Return the k of a box of planes: a stage's, or mma_k where a swizzle holds no more."""
        whole = self.block_k * precision.planar_bytes // 2 <= SWIZZLE_BYTES
        return self.block_k if whole else precision.operand.mma_k

    def box_row_bytes(self, precision: Precision) -> int:
        """Return the bytes of one row of a box of planes, all terms."""
        return self.box_k(precision) * precision.planar_bytes // 2

    @property
    def spill_interval(self) -> int:
        """Stages from one accumulator spill to the next."""
        return SPILL_INTERVAL

    def spills_accumulators(self, precision: Precision, k: int) -> bool:
        """Return whether accumulators spill: those of split operands, where k is long."""
        return not self._shares_k and self._exceeds_spill_interval(precision, k)

    @property
    def parts(self) -> int:
        """Equal parts of a tile, of whole groups of eight columns, that blocks of a cluster store.

        Where as many parts as blocks would not be equal, there are fewer, and the last blocks
        store none.
        """
        eights = self.block_n // 8
        return max(x for x in range(1, self.cluster + 1) if eights % x == 0)

    def takes_k(self, precision: Precision, k: int) -> bool:
        """Return whether a k is short enough for the accumulators, or they spill."""
        return not (self._shares_k and self._exceeds_spill_interval(precision, k))

    @property
    def _shares_k(self) -> bool:
        """Whether warpgroups or blocks share a tile's k: they would spill to the same memory."""
        return self.k_warpgroups > 1 or self.cluster > 1

    def _exceeds_spill_interval(self, precision: Precision, k: int) -> bool:
        """Return whether accumulators of split operands are too long without a spill."""
        each = -(-k // (self.block_k * self.k_warpgroups * self.cluster))
        return precision.terms > 1 and each > self.spill_interval * 3 // 2

    def can_overlap_epilogue(self, precision: Precision) -> bool:
        """Return whether registers suffice to overlap the epilogue with the next mainloop."""
        one_term = precision.operand.name == "tf32" and precision.terms == 1
        return one_term and not self.k_major and self.block_n == 128 and not self.odd_pitch

    def stage_bytes(self, precision: Precision) -> int:
        """Return the bytes of shared memory of one stage."""
        columns = self.block_n * precision.planar_bytes
        found = self.block_k * (self.block_m * self.x_element_bytes(precision) + columns)
        if self.odd_pitch:  # of odd lines, one element further, another swizzled row each
            found += (self.block_m if self.k_major else self.block_k) // 2 * SWIZZLE_BYTES
        return found

    def shared_bytes(self, precision: Precision) -> int:
        """Return the bytes of dynamic shared memory of a block.

        They hold the stages with two barriers each, boxes of results, the work queue, and the
        alignment of all.
        """
        boxes = 4 * self.m_warpgroups * 2 * _STORE_BOX_BYTES if self.tma_epilogue else 0
        clustered = self.cluster > 1
        more = self.fused_pack or self.k_warpgroups > 1 or clustered
        queue = WORK_QUEUE_BYTES + 16 * more + 16 * clustered
        exchange = 8 * self.block_m * self.block_n * (self.k_warpgroups - 1)
        stages = self.stages * (self.stage_bytes(precision) + 16)
        parts = 8 * self.block_m * self.block_n // self.parts * self.cluster * clustered
        return stages + boxes + exchange + parts + queue + ALIGNMENT

    @property
    def name(self) -> str:
        """The plan in words, for a record's algorithm column."""
        tile = f"{self.block_m}x{self.block_n}x{self.block_k} {self.stages} stages"
        tile += f", {self.k_warpgroups} warpgroups along k" * (self.k_warpgroups > 1)
        tile += f", a cluster of {self.cluster} slices" * (self.cluster > 1)
        return tile + ", ping-pong" * self.ping_pong
