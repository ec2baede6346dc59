"""Workspace of a product of the wgmma family: what a call takes in memory, and what it may take.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass

from argand.gemm.pack_plan import pitch_of
from argand.precision import Precision

MAX_WORKSPACE = 2
"""Largest workspace of a call, as a multiple of its operands' bytes, k rounded up to the pitch."""

SLICES_WORKSPACE = 1 / 4
"""Workspace of split-K slices beside planes that fill all of that, as a multiple of the same.

Two terms of tf32 do, and without slices few tiles of a long k leave most multiprocessors idle.
"""


@dataclass(frozen=True)
class OperandMemory:
    """Bytes of an operand as it is given, and of its planes, 0 where it is packed already."""

    bytes: int
    planes: int

    @classmethod
    def of(
        cls, precision: Precision, rows: int, k: int, batches: int, *, half: bool, packed: bool
    ) -> OperandMemory:
        """Count ``batches`` matrices of rows by k: complex64, pairs of 16 bits, or planes."""
        numbers = batches * rows * pitch_of(k)
        planes = numbers * precision.planar_bytes
        return cls(planes, 0) if packed else cls(numbers * (4 if half else 8), planes)


def partials_capacity(a: OperandMemory, b: OperandMemory, *, packs_a: bool, packs_b: bool) -> int:
    """Return the bytes that planes leave for partial tiles, or for split-K slices."""
    return MAX_WORKSPACE * (a.bytes + b.bytes) - packs_a * a.planes - packs_b * b.planes


def scan_bytes(precision: Precision, batch: int, m: int, n: int) -> int:
    """Return the most bytes of what a scan before mma.sync finds: the absmax of lines."""
    return 4 * batch * (m + n) * precision.scaled


def slices_pitch(columns: int) -> int:
    """Return the distance of rows of split-K slices, in complex64: TMA stores whole 16 bytes."""
    return columns + columns % 2


def slices_capacity(a: OperandMemory, b: OperandMemory) -> int:
    """Return the bytes that split-K slices may take in any case."""
    return int(SLICES_WORKSPACE * (a.bytes + b.bytes))
