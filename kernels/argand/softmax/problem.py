"""A call of `argand.softmax`, `log_softmax` or `logsumexp` as one value, without its data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from argand.operand_format import Format
from argand.precision import HALF_FORMATS, PRECISIONS, Precision
from argand.softmax.formats import REAL_KINDS, Operation

SOFTMAX_PRECISIONS = tuple(
    name for name, row in PRECISIONS.items() if row.counterpart or not row.scaled
)
"""Names of the precisions of a softmax, whose rounding needs no scales (`rounded_operand`)."""


def rounded_operand(precision: Precision) -> Format:
    """Return the format that a softmax rounds to, which has the range of fp32 or more.

    A scaled precision rounds as its counterpart does: fp16 as tf32, to 11 significant bits
    whatever the exponent, but ties to even. A scale by a power of two changes no significant bit:
    it brings operands of tensor cores into the range of fp16, and a softmax has none. Values below
    2^-28 of the row's largest, subnormal in a scaled row, so keep bits that they would lose. Raises
    ValueError for a scaled precision without one.
    """
    if not precision.scaled:
        return precision.operand
    if precision.counterpart is None:
        raise ValueError(
            f"precision of a softmax must be one of {list(SOFTMAX_PRECISIONS)}, "
            f"got {precision.name!r}"
        )
    return precision.counterpart.operand


def rounding_of(precision: Precision) -> Precision:
    """Return the row by which a softmax at a precision rounds numbers: to `rounded_operand`."""
    return replace(precision, operand=rounded_operand(precision), scaled=False)


@dataclass(frozen=True)
class SoftmaxProblem:
    """A softmax, its logarithm or the logarithm of its denominator, over the last axis.

    Attributes:
        shape: the shape of x.
        operation: softmax, log_softmax, or logsumexp, whose result has no last axis.
        precision: x is rounded to its operand (`rounding`); exponentials and sums have its
            accumulator's type.
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
    def rounding(self) -> Precision:
        """The precision whose rounding x needs.

        It is fp32, which rounds nothing, where the precision's operand holds every number of the
        input's kind. Else it is `rounding_of`.
        """
        rounding, held = rounding_of(self.precision), HALF_FORMATS.get(self.input)
        single = rounding.real_output == "float32"
        if single and held and held.significand <= rounding.operand.significand:
            return PRECISIONS["fp32"]
        return rounding

    @property
    def result_type(self) -> str:
        """The array type of the result; uint16 holds the bits of bf16."""
        return REAL_KINDS[self.output]
