"""Registers of the threads of a block. Needs no GPU."""

from __future__ import annotations

WARP = 32
_REGISTERS = 64 * 1024
LARGEST_REGISTERS = 255


def registers(threads: int) -> int:
    """Return the largest number of registers a thread in blocks of ``threads``.

    Each of the four schedulers has a quarter of the warps and of the multiprocessor's registers.
    """
    warps = -(-threads // (4 * WARP))
    return min(LARGEST_REGISTERS, _REGISTERS // (4 * WARP * warps) // 8 * 8)
