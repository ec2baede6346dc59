"""Bytes of a product's workspace, and the limits on them. Needs no GPU and no CuPy."""

from __future__ import annotations

from argand.precision import Precision

MAX_WORKSPACE = 2
"""Largest workspace of a call, as a multiple of its operands' bytes, k rounded up to the pitch."""

SLICES_WORKSPACE = 1 / 4
"""Workspace of split-K slices beside planes that fill all of that, as a multiple of the same.

Two terms of tf32 do, and without slices few tiles of a long k leave most multiprocessors idle.
"""

_ALIGNMENT = 256
"""Parts of a workspace and of packed operands begin at multiples of it: TMA reads planes."""


def aligned(nbytes: int) -> int:
    """Return bytes rounded up to where the next part of a memory begins."""
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def absmax_bytes(precision: Precision, batch: int, m: int, n: int) -> int:
    """Return the most bytes of what the absmax kernel finds before mma.sync."""
    return 4 * batch * (m + n) * precision.scaled


def slices_pitch(columns: int) -> int:
    """Return the distance of rows of split-K slices, in complex64: TMA stores whole 16 bytes."""
    return columns + columns % 2
