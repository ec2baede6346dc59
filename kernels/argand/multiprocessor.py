"""Limits of a multiprocessor, a block and a grid, and the sectors of L2. Needs no GPU.

They are those of the CUDA C++ Programming Guide (technical specifications per compute capability)
from 8.0 on; where cards differ they are Hopper's, whose kernels are the measured ones.
`argand.device.Arch` has the shared memory of a block for each architecture.
"""

from __future__ import annotations

WARP = 32
"""Threads of a warp."""
WARPGROUP = 4 * WARP
"""Threads that issue a wgmma together."""
LARGEST_BLOCK = 1024
"""Threads of a block."""
CLUSTER_SM = 90
"""The first `Arch.sm` whose blocks form clusters."""
PORTABLE_CLUSTER = 8
"""Blocks of a cluster that every card with clusters has."""
LARGEST_CLUSTER = 16
"""Blocks of a cluster of Hopper, of kernels with a function attribute that asks for it."""
LARGEST_GRID = 2**31 - 1
"""Blocks of a grid along x."""
RESIDENT_THREADS = 2048
"""Threads that a multiprocessor of Hopper holds."""
REGISTERS = 64 * 1024
"""Registers of a multiprocessor, of 32 bits."""
LARGEST_REGISTERS = 255
"""Registers of a thread."""
SHARED_BYTES = 228 * 1024
"""Shared memory of a multiprocessor of Hopper."""
RESERVED_BYTES = 1024
"""Shared memory of a multiprocessor that CUDA reserves for each block."""

SECTOR = 32
"""Bytes of a sector of L2, the least that memory reads and writes."""


def registers(threads: int) -> int:
    """Return the largest number of registers per thread in blocks of ``threads``.

    Each of the four schedulers has a quarter of the warps and of the multiprocessor's registers.
    """
    warps = -(-threads // WARPGROUP)
    return min(LARGEST_REGISTERS, REGISTERS // (WARPGROUP * warps) // 8 * 8)
