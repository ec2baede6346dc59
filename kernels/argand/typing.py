"""Types of what the public functions take, for annotations of one's own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy.typing as npt

from argand.gates.gate import Gate
from argand.gemm.packed import Packed
from argand.gemm.pairs import Pairs
from argand.precision import Precision


class Array(Protocol):
    """An array of any library: NumPy's, CuPy's, torch's, JAX's, or of one that has DLPack."""

    @property
    def shape(self) -> Any:
        """The lengths of its axes."""

    @property
    def dtype(self) -> Any:
        """The type of its elements."""


class TensorType(Protocol):
    """A type of elements as torch has them: ``torch.float16``."""

    @property
    def is_complex(self) -> bool:
        """Whether they are complex numbers."""


ArrayT = TypeVar("ArrayT", bound=Array)
"""The library's own type of an array: a result has that of the first operand."""
Operand: TypeAlias = npt.ArrayLike | Array | Pairs | Packed
"""Operands of a product; other operations take no `Packed`."""
PrecisionLike: TypeAlias = str | Precision | npt.DTypeLike | TensorType | None
"""A name, a row of `PRECISIONS`, a dtype of NumPy or torch, or None for that of the data."""
GateLike: TypeAlias = (
    Gate | tuple[Operand, Sequence[int]] | tuple[Operand, Sequence[int], Sequence[int]]
)
"""A gate of a circuit: an object, or its matrix, targets and controls."""
Observable: TypeAlias = str | tuple[str, float] | Mapping[str, Any]
"""A Pauli string, one with its coefficient, or a mapping that has both."""
