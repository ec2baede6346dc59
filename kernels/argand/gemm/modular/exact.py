"""The number of moduli of a product whose operands are integers of few bits and not rounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import frexp
from types import MappingProxyType
from typing import Any

from argand.gemm.modular.moduli import (
    EXACT,
    MAX_MODULI,
    MIN_MODULI,
    NORM_BLOCK,
    QUANTUM_BITS,
    moduli,
)
from argand.gemm.pairs import Pairs


@dataclass(frozen=True)
class Range:
    """The numbers of a format: multiples of 2^-``fraction_bits``, none beyond ``largest``."""

    largest: int
    fraction_bits: int = 0


RANGES: Mapping[str, Range] = MappingProxyType(
    {"int8": Range(128), "int16": Range(1 << 15), "fp16": Range(65504, 24)}
)
"""The formats of `Pairs` whose products are exact. Numbers of bf16 and fp32 span too much."""


def exact_moduli(a: Any, b: Any, k: int) -> int:
    """Return the fewest moduli whose integers are these operands themselves, whatever they hold.

    Args:
        a, b: `Pairs` of a format of `RANGES`.
        k: the length of a line.

    Raises:
        ValueError: other operands; a range and a k that no number of moduli holds.
    """
    formats = []
    for x in (a, b):
        if not isinstance(x, Pairs) or x.format not in RANGES:
            given = x.type_name if isinstance(x, Pairs) else x.dtype
            raise ValueError(f"precision {EXACT} takes Pairs of {list(RANGES)}, got {given}")
        formats.append(x.format)
    for count in range(MIN_MODULI, MAX_MODULI + 1):
        if all(_holds(RANGES[name], k, count) for name in formats):
            return count
    raise ValueError(f"k = {k} is too long for exact products of {formats[0]} and {formats[1]}")


def _holds(numbers: Range, k: int, count: int) -> bool:
    """Return whether every line of such numbers has an exponent of at least ``fraction_bits``.

    Its norm is counted as in `scaling.squared_norms`: the unit is that of the largest number or a
    smaller one, each of 2 k components counts one unit more than it has, and each block one squared
    unit more.
    """
    unit = Fraction(2) ** (frexp(numbers.largest)[1] - QUANTUM_BITS)
    counted = 2 * k * (numbers.largest + unit) ** 2 + -(-k // NORM_BLOCK) * unit**2
    return bool(counted * 4**numbers.fraction_bits <= moduli(count).largest_squared_norm(k))
