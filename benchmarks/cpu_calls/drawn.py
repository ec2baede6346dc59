"""Drawn cases of calls on the CPU, and their operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from argand import PRECISIONS

from benchmarks.sweep.draws import log_uniform

MAX_NUMBERS = 1 << 18
"""Most numbers of the operands and the result of a case."""


@dataclass(frozen=True)
class Drawn:
    """One call of ours, the lines of NumPy, and what they are called with.

    ``share`` is how far both results may be apart, over the largest element, in unit roundoffs:
    what their sums lose, for systems times the condition, for images with what phases lose.
    """

    shape: str
    batch: int
    ours: Callable[[], Any]
    lines: Callable[[], Any]
    share: float


def normal(rng: np.random.Generator, dtype: str, *shape: int) -> Any:
    """Return complex normal numbers."""
    real = np.float32 if dtype == "complex64" else np.float64
    return rng.standard_normal((*shape, 2), real).view(dtype)[..., 0]


def size(rng: np.random.Generator, low: int, high: int) -> int:
    """Return a size whose logarithm is uniform."""
    return int(log_uniform(rng, low, high, (1,))[0])


def leading_axes(batch: int, numbers: int) -> tuple[int, ...]:
    """Return the leading axes of ``batch`` operands, or of as many as `MAX_NUMBERS` allows."""
    batch = min(batch, max(1, MAX_NUMBERS // numbers))
    return () if batch == 1 else (batch,)


def precision_of(dtype: str) -> str:
    """Return the precision whose results are of a type."""
    return next(name for name, row in PRECISIONS.items() if row.output == dtype)


def drawn_batch(rng: np.random.Generator) -> int:
    """Return the number of matrices, systems or rows of a case: of one in a third."""
    return 1 if rng.random() < 1 / 3 else size(rng, 2, 1024)
