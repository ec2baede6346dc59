"""What a product of the wgmma family takes in memory besides its operands, and may take.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass

from argand.gemm.pack_plan import pitch_of
from argand.precision import Precision

MOST = 2
"""Times the operands that a call may take besides them, their k rounded up to that of planes."""


@dataclass(frozen=True)
class OperandMemory:
    """An operand's ``bytes`` as it is given, and those of its ``planes``, 0 where it is packed."""

    bytes: int
    planes: int

    @classmethod
    def of(
        cls, precision: Precision, lines: int, k: int, batches: int, *, half: bool, packed: bool
    ) -> OperandMemory:
        """That of ``batches`` matrices of lines by k: complex64, pairs of 16 bits, or planes."""
        numbers = batches * lines * pitch_of(k)
        planes = numbers * precision.planar_bytes
        return cls(planes, 0) if packed else cls(numbers * (4 if half else 8), planes)


def room(a: OperandMemory, b: OperandMemory, *, packs_a: bool, packs_b: bool) -> int:
    """Bytes that are left for sums of pieces, or of parts of k, once planes are there."""
    return MOST * (a.bytes + b.bytes) - packs_a * a.planes - packs_b * b.planes
