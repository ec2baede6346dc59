"""Plans of the kernels that find norms and exponents of lines and encode them as residues.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from argand.gemm.modular.moduli import NORM_BLOCK
from argand.multiprocessor import PORTABLE_CLUSTER, WARP

WARPS = 8
"""Warps of a CTA of the kernels that find norms and encode."""
EXPONENT_WARPS = 32
"""Warps of a CTA that finds the exponents of 32 lines."""
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


@dataclass(frozen=True)
class EncodePlan:
    """How a kernel reads the lines that it encodes.

    Attributes:
        reading: which numbers a CTA reads, and whether it holds them.
        threads: threads of a CTA.
        resident: CTAs of whole lines that a multiprocessor holds; None is as many as registers
            leave.
        buffers: lines that a CTA of whole lines holds at a time.
        cluster: CTAs of a cluster of clustered lines, and blocks that each of them holds.
        shared_bytes: dynamic shared memory of a CTA.
    """

    reading: Reading
    threads: int = WARP * WARPS
    resident: int | None = None
    buffers: int = 2
    cluster: tuple[int, int] = (8, 2)
    shared_bytes: int = 0


def encode_threads(dtype: str, reading: Reading, *, wide: bool, proved: bool) -> int:
    """Return the threads of a multiprocessor that encode: the most without spilled registers.

    ``wide`` says that integers have 64 bits, ``proved`` that the kernel works for a proof too.
    """
    blocks = reading == "across lines" and dtype == "complex64"
    return FEW_THREADS if blocks or (wide and proved) else MANY_THREADS


def norm_lines(item: int) -> int:
    """Return the lines of a CTA that finds norms of numbers of ``item`` bytes: `kNormLines`."""
    return 256 // item


def norm_threads(*, along_k: bool) -> int:
    """Return the threads of a CTA that finds norms."""
    return WARP * WARPS if along_k else NORM_THREADS


def clustered(k_blocks: int) -> tuple[int, int] | None:
    """Return a cluster's CTAs for lines of ``k_blocks``, and a CTA's blocks; None: too long."""
    for blocks in (1, 2):
        if k_blocks <= blocks * PORTABLE_CLUSTER:
            return -(-k_blocks // blocks), blocks
    return None


def clustered_bytes(item: int, blocks: int) -> int:
    """Return the shared memory of a CTA for ``blocks`` blocks of `ACROSS_BYTES`, with norms."""
    lines = ACROSS_BYTES // item
    return lines * ((blocks * NORM_BLOCK + 1) * item + 8 * blocks)


def whole_line_bytes(item: int, k_blocks: int, buffers: int) -> int:
    """Return the shared memory of a CTA that holds lines of ``k_blocks`` and their norms."""
    return k_blocks * (buffers * NORM_BLOCK * item + 8)
