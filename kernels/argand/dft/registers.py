"""Registers that threads of a block can have. Needs no GPU."""

from __future__ import annotations

WARP = 32
_REGISTERS = 64 * 1024
LARGEST_REGISTERS = 255


def registers(threads: int) -> int:
    """A thread of a block of so many can have.

    Warps are dealt out to four schedulers, each with a quarter of a multiprocessor's.
    """
    warps = -(-threads // (4 * WARP))
    return min(LARGEST_REGISTERS, _REGISTERS // (4 * WARP * warps) // 8 * 8)
