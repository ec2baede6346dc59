"""Plans of the mma.sync family. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass

ROW_PADDING = 4
"""Complex numbers between the rows of a tile; ``kRowPadding`` in the kernel says why."""
_COMPLEX_BYTES = 8
CLUSTER_SIZES = (1, 2, 3, 4, 5, 6, 8)
"""Blocks of a cluster that share the k of a tile. Each number is a kernel of its own."""
MAX_GRID_SLICES = 32
"""Most clusters that share a tile: the last one reduces the partial tiles of all."""
FULL_WARP = 2048
"""Elements of C, times terms, whose operands and accumulators fill the registers of a warp."""
SMALL_WARP = 256
"""Elements of C of a warp with few accumulators: `small_warps` in the kernel."""
LARGEST_ONE_TILE = 80
"""Rows of the largest tile whose result is stored through shared memory."""


@dataclass(frozen=True)
class MmaPlan:
    """Tile, stages and layouts of one kernel of the ``gemm_mma`` family.

    Attributes:
        block_m, block_n: rows and columns of a block's tile of C.
        block_k: elements of k in a k-tile, which fills one stage of the ring.
        warps_m, warps_n: warps that share the tile, along m and along n.
        stages: stages of the ring in shared memory.
        promotion_interval: k between promotions of the accumulators; 0: never.
        a_k_major, b_k_major: k is the operand's contiguous axis in memory.
        vector: complex numbers of one cp.async, 1 or 2; 2 needs alignment to 16 bytes.
        finds_absmax: at a precision that scales, each block finds the absmax of its rows itself,
            in stages that hold all k of its slice; the scales are then those of the slice. Else a
            launch before finds the absmax.
        warps_k: groups of ``warps_m x warps_n`` warps that share the k of each stage (sliced K).
        cluster: blocks of a cluster, each of which computes a slice of the k of one tile and stores
            a part of the sum.
        triangle: only tiles of the lower triangle are computed, which are square.
        any_strides: sizes or strides do not fit 32 bits, or an operand has no contiguous axis.
        mirror: results below the diagonal are stored above it, too, where columns are contiguous,
            and the diagonal is real.
        grid_slices: clusters that share the k of a tile; the last one reduces the partial tiles.
        whole_k: the k of a block, where the stages hold it: all of it is loaded at once, and the
            compiler knows the number of MMAs. It is all of k, rounded up to whole MMAs, or where k
            is cut a slice of whole k-tiles. 0 where it is longer.
        copies_between: a later k-tile is copied between the MMAs of the present one.
        one_tile: the tile covers all of a triangle. Its columns of B are its rows of A, which a
            stage holds once, and the result is stored through shared memory.
        blocks_per_sm: fewest blocks per multiprocessor, for `__launch_bounds__`.
    """

    block_m: int
    block_n: int
    block_k: int
    warps_m: int
    warps_n: int
    stages: int
    promotion_interval: int = 0
    a_k_major: bool = True
    b_k_major: bool = False
    vector: int = 1
    finds_absmax: bool = False
    warps_k: int = 1
    cluster: int = 1
    triangle: bool = False
    any_strides: bool = False
    mirror: bool = False
    grid_slices: int = 1
    whole_k: int = 0
    copies_between: bool = False
    one_tile: bool = False
    blocks_per_sm: int = 1

    @property
    def slices(self) -> int:
        """Slices that k is cut into, in blocks of all clusters."""
        return self.cluster * self.grid_slices

    @property
    def cut(self) -> bool:
        """Whether blocks or groups of warps share k (`sliced` in CUDA)."""
        return self.slices > 1 or self.warps_k > 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps_m * self.warps_n * self.warps_k

    @property
    def small_apart(self) -> bool:
        """Whether small products of terms have accumulators of their own (also in CUDA)."""
        return self.whole_k > 0 and self.promotion_interval > 0 and self.warp_elements <= SMALL_WARP

    @property
    def promoted_again(self) -> bool:
        """Whether such accumulators are promoted more than once."""
        return self.small_apart and self.whole_k > 3 * self.promotion_interval

    @property
    def launch_blocks(self) -> int:
        """Fewest blocks per multiprocessor in `__launch_bounds__`.

        Sums that are promoted again would take up to 245 registers, since those before are added
        under MMAs of the next ones; a k whose stages leave room for three blocks has 168.
        """
        if self.promoted_again and self.threads == 128 and not self.any_strides:
            return max(3, self.blocks_per_sm)
        return self.blocks_per_sm

    @property
    def one_warp(self) -> bool:
        """Whether a group has one warp, which only plans of `one_tile` may have (`sm80.legality`).

        It multiplies all of a triangle and reads each of its rows once.
        """
        return self.warps_m * self.warps_n == 1

    @property
    def warp_elements(self) -> int:
        """Elements of C that a warp computes, of `one_warp` in MMAs up to the diagonal."""
        if self.one_warp:
            return self.block_m * (self.block_m + 16) // 2
        return self.block_m // self.warps_m * (self.block_n // self.warps_n)

    @property
    def exchanged(self) -> int:
        """Complex numbers of a tile, rounded up to equal parts of whole pairs, one a block."""
        return -2 * self.cluster * (-self.block_m * self.block_n // 2 // self.cluster)

    @property
    def part_bytes(self) -> int:
        """Bytes of what a block receives from each other block of its cluster."""
        return _COMPLEX_BYTES * self.exchanged // self.cluster

    @property
    def shared_bytes(self) -> int:
        """Least dynamic shared memory of a block whose k fills all stages."""
        received = self.part_bytes * (self.cluster - 1)
        return max(self.stages * self._stage_bytes + received, self._result_bytes)

    @property
    def _stage_bytes(self) -> int:
        a = _tile(self.block_m, self.block_k, self.a_k_major)
        b = _tile(self.block_n, self.block_k, self.b_k_major)
        return _COMPLEX_BYTES * (a + b * (not self.one_tile))

    @property
    def _result_bytes(self) -> int:
        """Return the shared memory of a result that `one_tile` stores through it, 0 for others."""
        return _COMPLEX_BYTES * self.block_m * (self.block_n + 2) * self.one_tile

    def least_bytes(self, k: int) -> int:
        """Return the least shared memory of a block for a ``k``: that of the stages it fills.

        A short k leaves the others, so that a multiprocessor holds more blocks. Partial sums that
        are reduced lie in the memory of all stages.
        """
        if self.slices * self.warps_k > 1:
            return self.shared_bytes
        filled = min(self.stages, max(1, -(-k // self.block_k)))
        return max(filled * self._stage_bytes, self._result_bytes)

    @property
    def name(self) -> str:
        """The plan in words, for a record's algorithm column."""
        slices = f", {self.slices} split-K slices" if self.slices > 1 else ""
        slices += f" in {self.grid_slices} clusters" if self.grid_slices > 1 else ""
        triangle = ", lower triangle" if self.triangle else ""
        triangle += " of one warp" if self.one_warp else ""
        return (
            f"{self.block_m}x{self.block_n}x{self.block_k} {self.stages} stages{slices}{triangle}"
        )


def _tile(rows: int, k: int, k_major: bool) -> int:
    fast, slow = (k, rows) if k_major else (rows, k)
    return slow * (fast + ROW_PADDING)


def holds_accumulators(plan: MmaPlan) -> bool:
    """Return whether partial sums to reduce fit in the memory of the stages, in any layout."""
    if plan.warps_k * plan.slices == 1:
        return True
    sides = (plan.block_m,) if plan.one_tile else (plan.block_m, plan.block_n)
    tiles = sum(
        min(_tile(rows, plan.block_k, k_major=major) for major in (True, False)) for rows in sides
    )
    return plan.warps_k * plan.block_m * plan.block_n <= plan.stages * tiles
