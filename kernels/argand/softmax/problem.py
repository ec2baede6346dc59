"""What a call of `argand.softmax`, `log_softmax` or `logsumexp` computes, without its data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from argand.precision import Precision
from argand.softmax.formats import REAL_KINDS, Operation


@dataclass(frozen=True)
class SoftmaxProblem:
    """What a call computes: e^(s x), its logarithm or that of its sum, over the last axis.

    Attributes:
        shape: of x.
        operation: softmax, log_softmax, or logsumexp, whose result has no last axis.
        precision: what x is rounded to, and in what exponentials and sums are taken.
        input, output: kinds of the elements of x and of the result, of `softmax.formats`. Of a
            complex x the squared magnitude is what goes in.
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
        """How many rows there are."""
        return math.prod(self.shape[:-1])

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Of the result."""
        return self.shape[:-1] if self.operation == "logsumexp" else self.shape

    @property
    def result_type(self) -> str:
        """The array type of the result; uint16 holds the bits of bf16."""
        return REAL_KINDS[self.output]
