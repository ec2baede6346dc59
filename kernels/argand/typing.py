"""Types of what the public functions take, for annotations of one's own code.

Each is defined beside what it describes; operations import it from there.
"""

from __future__ import annotations

from argand.array_types import Array, ArrayT, PrecisionLike, TensorType
from argand.gates.gate import GateLike
from argand.gemm.pack.packed import Operand
from argand.readout.problem import Observable

__all__ = [
    "Array",
    "ArrayT",
    "GateLike",
    "Observable",
    "Operand",
    "PrecisionLike",
    "TensorType",
]
