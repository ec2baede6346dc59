"""Plans of the kernels that multiply residues, and the shapes of launches of exact products.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from argand.device import Arch
from argand.gemm.families import Family
from argand.gemm.modular.moduli import NORM_BLOCK
from argand.multiprocessor import PORTABLE_CLUSTER
from argand.runtime.plan import WGMMA_TARGET, PlanError

TILE_K = 128
"""k of a stage, which is also the bytes of a row."""
RASTER_ROWS = 2048
"""Rows of C that are rasterized together."""
COLUMN_BLOCK = 128
"""n of residues is a multiple of this."""
DECODE_ROWS = 8
"""Most rows that a warp decodes."""
WARPS = 8
"""Warps of a CTA of the kernels that find norms and encode."""
EXPONENT_WARPS = 32
"""Warps of a CTA that finds the exponents of 32 lines."""
DECODE_WARPS = 4
"""Warps of a CTA that decodes."""
ACROSS_BYTES = 128
"""Bytes of lines that a CTA reads which encodes across lines."""
ACROSS_GROUP = 8
"""Neighbouring CTAs across lines that are launched one after another."""
NORM_THREADS = 512
"""Threads of a CTA that finds norms across lines."""
Reading = Literal["whole lines", "clustered lines", "along k", "across lines"]
"""How an operand is encoded: lines held in the shared memory of a CTA, or transposed in that of a
cluster; else by blocks along k, or by transposed blocks."""
FEW_THREADS, MANY_THREADS = 768, 1024
"""Threads of a multiprocessor that encode, with 80 registers each and with 64."""
HELD: tuple[Reading, ...] = ("whole lines", "clustered lines")
"""Readings for which a line's exponent is found as it is encoded, not before."""
_ALIGNMENT = 1024
_STAGE_STATE = 48
"""Shared memory of a stage of wgmma beside its tiles: two mbarriers, and a tile in words."""


@dataclass(frozen=True)
class EncodePlan:
    """How a kernel reads the lines that it encodes.

    Attributes:
        reading: which numbers a CTA reads, and whether it holds them.
        threads: of a CTA.
        resident: CTAs of whole lines that a multiprocessor holds; None is as many as registers
            leave.
        buffers: lines that a CTA of whole lines holds at a time.
        cluster: CTAs of a cluster of clustered lines, and blocks that each of them holds.
        shared_bytes: dynamic shared memory of a CTA.
    """

    reading: Reading
    threads: int = 32 * WARPS
    resident: int | None = None
    buffers: int = 2
    cluster: tuple[int, int] = (8, 2)
    shared_bytes: int = 0


@dataclass(frozen=True)
class ResiduePlan:
    """One kernel that multiplies residues: a tile, and how many stages are in shared memory.

    ``warpgroup_rows`` are those of a consumer warpgroup of wgmma, 0 for mma.sync. Where
    ``resident_tiles`` is not 0, columns of B of at most that number of stages stay in shared memory
    for a stack of ``stack_tiles`` tiles below each other, which two consumer warpgroups multiply in
    turn.
    """

    block_m: int
    block_n: int
    stages: int
    warpgroup_rows: int = 0
    resident_tiles: int = 0
    stack_tiles: int = 0

    @property
    def family(self) -> Family:
        """The family of kernels."""
        return "wgmma" if self.warpgroup_rows else "mma.sync"

    @property
    def threads(self) -> int:
        """Threads of a block: two consumer warpgroups and a producer, or warps of 32 x 64."""
        return 384 if self.warpgroup_rows else self.block_m * self.block_n // 64

    def takes(self, k_tiles: int, slices: int = 1) -> bool:
        """Return whether lines of a number of stages can be multiplied in a number of slices."""
        return not self.resident_tiles or (k_tiles <= self.resident_tiles and slices == 1)

    @property
    def shared_bytes(self) -> int:
        """Bytes of dynamic shared memory of a block."""
        if self.resident_tiles:
            rows = self.stages * self.block_m + self.resident_tiles * self.block_n
            return rows * TILE_K + 16 * (self.stages + self.resident_tiles) + _ALIGNMENT
        stages = self.stages * (self.block_m + self.block_n) * TILE_K
        if not self.warpgroup_rows:
            return stages
        return stages + _STAGE_STATE * self.stages + _ALIGNMENT

    @property
    def name(self) -> str:
        """The plan in words, for a record's algorithm column."""
        held = f" under {self.stack_tiles} tiles" if self.resident_tiles else ""
        return f"{self.family} {self.block_m}x{self.block_n}x{TILE_K} {self.stages} stages{held}"


WGMMA_PLANS = (
    ResiduePlan(128, 256, 4, 64),
    ResiduePlan(256, 192, 4, 128),
    ResiduePlan(128, 128, 6, 64),
    ResiduePlan(128, 128, 6, 128, 8, 4),
    ResiduePlan(64, 256, 12, 64, 4, 8),
)
"""The plans for Hopper: a tile of 256 x 192 reads least from L2, small ones fill a card."""
MMA_PLANS = (ResiduePlan(128, 128, 3), ResiduePlan(64, 64, 4))


def plans_of(arch: Arch, family: Family | None = None) -> tuple[ResiduePlan, ...]:
    """Return the plans of an architecture, of one family or of the fastest that it has.

    Raises PlanError where it has none.
    """
    if family is None:
        family = "wgmma" if arch.target == WGMMA_TARGET else "mma.sync"
    found = [
        plan
        for plan in (*WGMMA_PLANS, *MMA_PLANS)
        if plan.family == family and plan.shared_bytes <= arch.shared_bytes
        and (family != "wgmma" or arch.target == WGMMA_TARGET)
    ]  # fmt: skip
    if not found:
        raise PlanError(f"{arch.name} has no kernels of {family} for exact products, but mma.sync")
    return tuple(found)


def decode_bytes(count: int, *, proved: bool = False) -> int:
    """Return the shared memory of a CTA that decodes: two rows a warp, padded for a proof."""
    return DECODE_WARPS * 2 * 2 * count * (COLUMN_BLOCK + 16 * proved)


def encode_threads(dtype: str, reading: Reading, *, wide: bool, proved: bool) -> int:
    """Return the threads of a multiprocessor that encode, so many that none spills registers.

    ``wide`` says that integers have 64 bits, ``proved`` that the kernel works for a proof too.
    """
    blocks = reading == "across lines" and dtype == "complex64"
    return FEW_THREADS if blocks or (wide and proved) else MANY_THREADS


def norm_lines(item: int) -> int:
    """Return the lines of a CTA that finds norms of numbers of ``item`` bytes: `kNormLines`."""
    return 256 // item


def norm_threads(*, along_k: bool) -> int:
    """Return the threads of a CTA that finds norms."""
    return 32 * WARPS if along_k else NORM_THREADS


def clustered(k_blocks: int) -> tuple[int, int] | None:
    """Return a cluster's CTAs for lines of so many blocks, and a CTA's blocks; None: too long."""
    for blocks in (1, 2):
        if k_blocks <= blocks * PORTABLE_CLUSTER:
            return -(-k_blocks // blocks), blocks
    return None


def clustered_bytes(item: int, blocks: int) -> int:
    """Return the shared memory of a CTA for so many blocks of `ACROSS_BYTES`, with norms."""
    lines = ACROSS_BYTES // item
    return lines * ((blocks * NORM_BLOCK + 1) * item + 8 * blocks)


def whole_line_bytes(item: int, k_blocks: int, buffers: int) -> int:
    """Return the shared memory of a CTA that holds lines of so many blocks, and their norms."""
    return k_blocks * (buffers * NORM_BLOCK * item + 8)
