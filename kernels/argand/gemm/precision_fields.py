"""The members of CUDA plans that say how operands are rounded. Needs no GPU and no CuPy."""

from __future__ import annotations

from argand.gemm.in_tf32 import BF16_IN_TF32
from argand.precision import Precision
from argand.runtime.compile.cpp import roundings


def precision_fields(precision: Precision) -> dict[str, object]:
    """Return the members of a CUDA plan that say how operands are rounded."""
    to_bf16 = precision.operand == BF16_IN_TF32
    return {
        "operand": f"Operand::{precision.operand.name}",
        "terms": precision.terms,
        "roundings": ("Rounding::to_bf16",) * 2 if to_bf16 else roundings(precision),
    }
