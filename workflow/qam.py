"""Square QAM constellations of unit mean power with Gray mapping: bits to symbols and back.

Half of a symbol's bits choose its real part, the others its imaginary part: the levels of a part,
from the lowest to the highest, have the Gray code of their number, so neighbours differ in one bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
ORDERS = (4, 16, 64, 256, 1024)
"""Symbols of a constellation."""


def bits_of(order: int) -> int:
    """Return the bits of a symbol."""
    return order.bit_length() - 1


def modulated(numbers: Array, order: int) -> Array:
    """Return the complex128 symbols of numbers below ``order``, whose bits are mapped."""
    side, half = math.isqrt(order), bits_of(order) // 2
    code = np.arange(side) ^ (np.arange(side) >> 1)
    level = np.empty(side, int)
    level[code] = np.arange(side)
    real, imag = level[numbers >> half], level[numbers & (side - 1)]
    return np.asarray((2 * real - side + 1 + 1j * (2 * imag - side + 1)) / _scale(order))


def hard_bits(symbols: Array, order: int) -> Array:
    """Return the numbers of the nearest symbols of a constellation; 0 for NaN."""
    side, half = math.isqrt(order), bits_of(order) // 2

    def part(x: Array) -> Array:
        level = np.rint((np.nan_to_num(x) * _scale(order) + side - 1) / 2)
        level = np.clip(level, 0, side - 1).astype(int)
        return np.asarray(level ^ (level >> 1))

    return (part(symbols.real) << half) | part(symbols.imag)


def bit_errors(sent: Array, received: Array) -> Array:
    """Return how many bits of each number differ."""
    return np.bitwise_count(np.asarray(sent ^ received, np.uint16))


def _scale(order: int) -> float:
    """The distance of two levels is 2 over this."""
    return math.sqrt(2 * (order - 1) / 3)
