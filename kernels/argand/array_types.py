"""Types of arrays, of their elements and of precisions, as any library has them."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, TypeVar

import numpy.typing as npt

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
PrecisionLike: TypeAlias = str | Precision | npt.DTypeLike | TensorType | None
"""A name, a row of `PRECISIONS`, a dtype of NumPy or torch, or None for that of the data."""
