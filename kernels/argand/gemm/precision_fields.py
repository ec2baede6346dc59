"""The members of CUDA plans that say how operands are rounded. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Sequence

from argand.gemm.in_tf32 import BF16_IN_TF32
from argand.precision import Precision


def precision_fields(precision: Precision) -> dict[str, object]:
    """Return the members of a CUDA plan that say how operands are rounded."""
    # Terms of one number are rounded apart; a single term fills the second place unread.
    modes: Sequence[str] = precision.roundings
    if precision.operand == BF16_IN_TF32:
        modes = ["to_bf16"]
    roundings = ", ".join(f"Rounding::{(*modes, modes[0])[i]}" for i in range(2))
    return {
        "operand": f"Operand::{precision.operand.name}",
        "terms": precision.terms,
        "roundings": f"{{{roundings}}}",
    }
