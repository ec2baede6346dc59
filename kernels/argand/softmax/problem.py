"""A call of `argand.softmax`, `log_softmax` or `logsumexp` as one value, without its data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from argand.precision import Precision
from argand.softmax.formats import REAL_KINDS, Operation


@dataclass(frozen=True)
class SoftmaxProblem:
    """A softmax, its logarithm or the logarithm of its denominator, over the last axis.

    Attributes:
        shape: of x.
        operation: softmax, log_softmax, or logsumexp, whose result has no last axis.
        precision: x is rounded to its operand; exponentials and sums have its accumulator's type.
        input, output: kinds of the elements of x and of the result (`softmax.formats`). The
            squared magnitude of a complex x is the input.
        scale: s.
    """

    shape: tuple[int, ...]
    operation: Operation
    precision: Precision
    input: str
    output: str
    scale: float = 1.0

    @property
    def columns(self) -> int:
        """Length of the last axis."""
        return self.shape[-1]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return math.prod(self.shape[:-1])

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self.shape[:-1] if self.operation == "logsumexp" else self.shape

    @property
    def result_type(self) -> str:
        """The array type of the result; uint16 holds the bits of bf16."""
        return REAL_KINDS[self.output]
