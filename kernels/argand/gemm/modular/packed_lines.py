"""Packed operands of exact products on the CPU: the integers of their lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.cpu import oriented
from argand.gemm.modular.moduli import moduli
from argand.gemm.modular.residues import Integers, integers
from argand.gemm.operands import Op, Side

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class PackedLines:
    """The integers of each matrix's lines, over ``batch_shape``, of an operand of ``dtype``."""

    matrices: list[Integers]
    batch_shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(
            x.nbytes
            for one in self.matrices
            for x in (one.real, one.imag, one.exponents, one.finite)
        )

    def over(self, batch_shape: tuple[int, ...]) -> list[Integers]:
        """Return the matrices of a product with these leading axes, in order."""
        numbers = np.arange(len(self.matrices)).reshape(self.batch_shape)
        return [self.matrices[i] for i in np.broadcast_to(numbers, batch_shape).ravel().tolist()]


def pack(x: Array, op: Op, count: int, side: Side) -> PackedLines:
    """Return x, complex, packed for ``count`` moduli; arguments as in `argand.pack`.

    Raises ValueError where k is too long for the moduli.
    """
    turned = oriented(x, op)
    lines = turned if side == "a" else np.swapaxes(turned, -1, -2)
    matrices = [
        integers(np.ascontiguousarray(lines[index]), moduli(count))
        for index in np.ndindex(x.shape[:-2])
    ]
    return PackedLines(matrices, x.shape[:-2], str(x.dtype))
