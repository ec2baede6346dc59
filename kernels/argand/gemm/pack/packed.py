"""Operands that were packed for many calls, whether they fit a call, and every type of operand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy.typing as npt

from argand.array_types import Array
from argand.device import Device
from argand.gemm.operands import Side
from argand.gemm.pairs import Pairs
from argand.precision import Precision


@dataclass(frozen=True, eq=False)
class Packed:
    """An operand as the kernels of one precision multiply it; made by `argand.pack`.

    Attributes:
        shape: the shape of op(x): ``(..., m, k)`` on side a, ``(..., k, n)`` on side b.
        precision: what it was rounded for, with its rounding.
        side: a or b, whether it stands left or right of the product.
        device: where it lives.
        nbytes: memory that it takes.
        backend_data: what that device's backend multiplies; only the backend knows its layout.
    """

    shape: tuple[int, ...]
    precision: Precision
    side: Side
    device: Device
    nbytes: int
    backend_data: Any = field(repr=False)

    @property
    def ndim(self) -> int:
        """Axes of op(x)."""
        return len(self.shape)


Operand: TypeAlias = npt.ArrayLike | Array | Pairs | Packed
"""Operands of a product; other operations take no `Packed`."""


def check_packed(packed: Packed, side: str, op: str, precision: Precision) -> None:
    """Raise ValueError where an operand was packed for another call than this one."""
    if packed.side != side:
        raise ValueError(f"{side} was packed for side {packed.side}; it must be of side {side}")
    if op != "N":
        raise ValueError(f"op_{side} of a packed operand must be 'N', got {op!r}: pack(op=...)")
    if packed.precision.name != precision.name:
        raise ValueError(
            f"{side} was packed at {packed.precision.name} and the product is at {precision.name}; "
            "they must be the same"
        )
    if packed.precision != precision:
        raise ValueError(
            f"{side} was packed with rounding {list(packed.precision.roundings)} and the product "
            f"has {list(precision.roundings)}; they must be the same"
        )
