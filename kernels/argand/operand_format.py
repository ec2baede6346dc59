"""Binary floating-point formats of operands, and the ways to round to one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

Rounding = Literal["toward_zero", "nearest_even", "half_ulp_truncate"]
"""How a term is rounded to its format.

``toward_zero`` drops the low bits, which is what a tensor core does with the fp32 bits it is given;
``nearest_even`` is IEEE 754's default; ``half_ulp_truncate`` adds half a unit in the last place to
the magnitude and drops the rest: nearest, ties away from zero.
"""
ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)


@dataclass(frozen=True)
class Format:
    """A binary floating-point format of an operand.

    Attributes:
        name: the name in Python, and as ``Operand::name`` in the CUDA sources.
        significand: bits of the significand, with the implicit one.
        min_exponent: the exponent of the smallest normal number.
        largest: the largest finite value.
        bytes: bytes of a number in memory.
        cublas: how cuBLAS's gemmEx multiplies it, for the measured ceiling: the type of A and B,
            that of C (``library_types.h``) and the compute type (``cublas_api.h``).
        ptx: the type in PTX's MMA instructions; None where tensor cores have no such operand.
    """

    name: str
    significand: int
    min_exponent: int
    largest: float
    bytes: int
    cublas: tuple[int, int, int]
    ptx: str | None = None

    @property
    def mma_k(self) -> int:
        """k of one MMA instruction, mma.sync or wgmma: 32 bytes of a row in every format."""
        return 32 // self.bytes

    @property
    def exponent_bits(self) -> int:
        """Bits of the exponent in memory, whose bias is that of IEEE 754."""
        return (2 - self.min_exponent).bit_length()

    @property
    def smallest_subnormal(self) -> float:
        """The spacing of the numbers below ``2**min_exponent``."""
        return 2.0 ** (self.min_exponent - self.significand + 1)

    @property
    def scaled_exponent(self) -> int:
        """e where scaling brings the largest component of a line into [2^e, 2^(e + 1)).

        One power of two below the format's largest, so that what is rounded up stays finite.
        """
        return math.frexp(self.largest)[1] - 2
