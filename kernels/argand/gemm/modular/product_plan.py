"""Plans of the kernels that multiply residues. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from argand.device import Arch
from argand.gemm.families import Family
from argand.runtime.plan import WGMMA_TARGET, PlanError

BLOCK_K = 128
"""k of a stage, which is also the bytes of a row."""
RASTER_ROWS = 2048
"""Rows of C that are rasterized together."""
COLUMN_BLOCK = 128
"""n of residues is a multiple of this."""
_ALIGNMENT = 1024
_STAGE_STATE = 48
"""Shared memory of a stage of wgmma beside its tiles: two mbarriers, and a tile in words."""


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
            return rows * BLOCK_K + 16 * (self.stages + self.resident_tiles) + _ALIGNMENT
        stages = self.stages * (self.block_m + self.block_n) * BLOCK_K
        if not self.warpgroup_rows:
            return stages
        return stages + _STAGE_STATE * self.stages + _ALIGNMENT

    @property
    def name(self) -> str:
        """The plan in words, for a record's algorithm column."""
        held = f" under {self.stack_tiles} tiles" if self.resident_tiles else ""
        return f"{self.family} {self.block_m}x{self.block_n}x{BLOCK_K} {self.stages} stages{held}"


WGMMA_PLANS = (
    ResiduePlan(128, 256, 4, warpgroup_rows=64),
    ResiduePlan(256, 192, 4, warpgroup_rows=128),
    ResiduePlan(128, 128, 6, warpgroup_rows=64),
    ResiduePlan(128, 128, 6, warpgroup_rows=128, resident_tiles=8, stack_tiles=4),
    ResiduePlan(64, 256, 12, warpgroup_rows=64, resident_tiles=4, stack_tiles=8),
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
