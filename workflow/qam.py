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


def soft_bits(symbols: Array, order: int, noise: Array | float) -> Array:
    """Return the log-likelihood ratios (..., bit) of bits, the highest first.

    Each is that of 0 over 1 by the nearest symbols of both (max-log), for complex noise of a mean
    power, positive and broadcast against the symbols.
    """
    side, half = math.isqrt(order), bits_of(order) // 2
    levels = (2 * np.arange(side) - side + 1) / _scale(order)
    code = np.arange(side) ^ (np.arange(side) >> 1)
    found = np.empty((*symbols.shape, 2 * half))
    for first, x in ((0, symbols.real), (half, symbols.imag)):
        distance = np.square(x[..., None] - levels)
        for bit in range(half):
            ones = (code >> (half - 1 - bit)) & 1 == 1
            nearest = [distance[..., chosen].min(axis=-1) for chosen in (ones, ~ones)]
            found[..., first + bit] = (nearest[0] - nearest[1]) / noise
    return found


def bits_decided(ratios: Array) -> Array:
    """Return the numbers that log-likelihood ratios (..., bit) say; NaN is 0."""
    shifts = np.arange(ratios.shape[-1])[::-1]
    return np.asarray(((ratios < 0).astype(int) << shifts).sum(axis=-1))


def error_power(sent: Array, symbols: Array, order: int) -> Array:
    """Return the mean power of errors of each transmitter (snr, 1, 1, transmitter, 1).

    Symbols are (snr, time, frequency, transmitter, symbol), the numbers sent have all axes but the
    first. The smallest positive number stands for no error.
    """
    error = np.square(np.abs(symbols - modulated(sent, order)))
    known = np.isfinite(error)
    axes = (1, 2, 4)
    total = np.where(known, error, 0).sum(axis=axes, keepdims=True)
    found = total / np.maximum(known.sum(axis=axes, keepdims=True), 1)
    return np.asarray(np.maximum(found, np.finfo(float).tiny))


def information(numbers: Array, ratios: Array, order: int) -> float:
    """Return the bits a symbol that soft bits carry, at most those of a symbol.

    The mean over symbols of the sum over bits of 1 - log2(1 + exp(-r)), r the log-likelihood ratio
    (..., bit) of the bit that was sent: the mutual information of bit-interleaved coding.
    """
    bits = bits_of(order)
    shifts = np.arange(bits)[::-1]
    sent = (numbers[..., None] >> shifts) & 1
    lost = np.logaddexp(0, np.where(sent == 0, -ratios, ratios)) / math.log(2)
    return float(bits - lost.sum(axis=-1).mean())


def bit_errors(sent: Array, received: Array) -> Array:
    """Return how many bits of each number differ."""
    return np.bitwise_count(np.asarray(sent ^ received, np.uint16))


def _scale(order: int) -> float:
    """Return the distance of two levels is 2 over this."""
    return math.sqrt(2 * (order - 1) / 3)
