"""Results from residues: the Chinese remainder theorem in integers, and one rounding at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.modular.moduli import Moduli
from argand.gemm.modular.scaling import bit_length

Array = npt.NDArray[Any]
_LIMBS, _LIMB_BITS = 4, 32
"""Integers are held modulo 2^128, which is above twice the product of all moduli."""
_KEPT_BITS = 62
"""Leading bits of an integer that are rounded, the last of them sticky."""
_FORMATS = {np.dtype(np.float64): (53, -1074), np.dtype(np.float32): (24, -149)}
"""Bits of a significand, and the exponent of the smallest subnormal number."""


class Accumulator:
    """The sum over moduli of t_p P/p, from which the integer follows: real or imaginary parts.

    ``add`` takes each modulus once, with t_p: the residue times the inverse of P/p, modulo p.
    """

    def __init__(self, shape: tuple[int, ...], moduli: Moduli) -> None:
        self._moduli = moduli
        self._limbs = np.zeros((_LIMBS, *shape), np.int64)
        self._quotient = np.zeros(shape)

    def add(self, index: int, weighted: Array) -> None:
        """Add modulus number ``index``; ``weighted`` is t_p, from 0 to p - 1."""
        row = self._moduli.rows[index]
        for limb, part in zip(self._limbs, _limbs_of(row.rest), strict=True):
            limb += weighted * part
        self._quotient += weighted / row.p

    def magnitudes(self) -> tuple[Array, Array, Array]:
        """Return sign (bool, true below 0) and magnitude (uint64, high and low) of the integers.

        The sum is the integer plus a multiple of P. The integer is far from half of P (the margin
        of `Moduli.largest_squared_norm`), so the quotient, rounded, is that multiple.
        """
        multiple = np.rint(self._quotient).astype(np.int64)
        words, carry = [], np.zeros_like(multiple)
        for limb, part in zip(self._limbs, _limbs_of(self._moduli.product), strict=True):
            total = limb - multiple * part + carry
            words.append((total & 0xFFFFFFFF).astype(np.uint64))
            carry = total >> _LIMB_BITS
        low, high = words[0] | words[1] << np.uint64(32), words[2] | words[3] << np.uint64(32)
        negative = carry < 0
        low = np.where(negative, ~low + np.uint64(1), low)
        high = np.where(negative, ~high + (low == 0), high)
        return negative, high, low


def modulo(negative: Array, high: Array, low: Array, prime: int) -> Array:
    """Return the integers of `Accumulator.magnitudes` modulo a prime below 2^31, int64."""
    found = np.zeros(low.shape, np.int64)
    for word in (high, low):
        for shift in (48, 32, 16, 0):
            part = (word >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.int64)
            found = ((found << 16) + part) % prime
    return np.where(negative, -found, found) % prime


def _limbs_of(number: int) -> list[np.int64]:
    mask = (1 << _LIMB_BITS) - 1
    return [np.int64(number >> _LIMB_BITS * i & mask) for i in range(_LIMBS)]


def rounded(
    negative: Array, high: Array, low: Array, exponent: Array, dtype: npt.DTypeLike
) -> Array:
    """Return (high 2^64 + low) 2^exponent with its sign, rounded once to nearest, ties to even.

    Args:
        negative: bool.
        high, low: uint64, below 2^125 together.
        exponent: int64, of any size.
        dtype: float32 or float64. Subnormal results are rounded to what they hold; what is too
            large is an infinity. Zeros are positive.
    """
    dtype = np.dtype(dtype)
    bits, least = _FORMATS[dtype]
    kept, shift = _leading(high, low)
    exponent = exponent + shift
    drop = np.maximum(bit_length(kept) - bits, least - exponent)
    drop = np.clip(drop, 0, _KEPT_BITS + 1).astype(np.uint64)
    whole = kept >> drop
    rest = kept - (whole << drop)
    half = np.where(drop > 0, np.uint64(1) << (np.maximum(drop, np.uint64(1)) - np.uint64(1)), 0)
    up = (drop > 0) & ((rest > half) | ((rest == half) & (whole & np.uint64(1) == 1)))
    power = np.clip(exponent + drop.astype(np.int64), -5000, 5000).astype(np.int32)
    with np.errstate(over="ignore", under="ignore"):
        found = np.ldexp((whole + up).astype(np.float64), power)
        return np.asarray(np.where(negative & (found != 0), -found, found).astype(dtype))


def _leading(high: Array, low: Array) -> tuple[Array, Array]:
    """Return the leading bits, the last one set where any below them is, and their exponent."""
    length = np.where(high > 0, 64 + bit_length(high), bit_length(low))
    shift = np.maximum(length - _KEPT_BITS, 0)
    by = shift.astype(np.uint64)
    above = np.where(shift > 0, high << (np.uint64(64) - np.maximum(by, np.uint64(1))), 0)
    kept = (low >> by) | above.astype(np.uint64)
    lost = low & ((np.uint64(1) << by) - np.uint64(1))
    return kept | (lost > 0), shift


def times(x: Any, factor: complex) -> Any:
    """Return x times a complex number, each product and sum rounded for itself on every machine."""
    kind = x.real.dtype.type
    real, imag = kind(complex(factor).real), kind(complex(factor).imag)
    out = np.empty_like(x)
    out.real = np.subtract(x.real * real, x.imag * imag)
    out.imag = np.add(x.real * imag, x.imag * real)
    return out
