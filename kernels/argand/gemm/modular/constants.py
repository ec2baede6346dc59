"""Constants of the kernels' modular arithmetic, and the proofs of their ranges.

The kernels divide nothing. An integer is brought to 2^23 + z by dot products of its bytes, as the
bits of an fp32 number; a fused multiply-add gives the quotient of z by p, and an integer
multiply-add the residue (cuda/gemm/modular/moduli.cuh). Each function here raises ValueError where
a number would leave the range in which that is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from argand.gemm.modular.moduli import MODULI, moduli, root_of_minus_one
from argand.runtime.compile.cpp import literal

INT32_MODULI = 8
"""Most moduli whose integers fit 32 bits: sqrt(P / 2) is below 2^31."""
SUM_BIAS = 0x40180000
"""kSumBias of cuda/gemm/modular/product_plan.cuh."""
LARGEST_RESIDUE = 125
"""The largest magnitude of a residue: 65536 products of two of them stay within `SUM_BIAS`."""
_MAGIC = 1 << 23
_MAGIC_BITS = 0x4B000000
_LIMB_BITS = (32, 19, 19, 19)
"""Bits of the fixed-point digits of a fraction of P, as `kLimbs` of decode.cuh has them."""


def balanced(x: int, p: int) -> int:
    """Return x modulo p, the residue of the least magnitude."""
    return (x + p // 2) % p - p // 2


@dataclass(frozen=True)
class EncodeModulus:
    """`EncodeModulus` of moduli.cuh for integers of some signed digits to base 256."""

    real: tuple[int, ...]
    turned: tuple[int, ...]
    offset: int
    reciprocal: float
    correction: float
    p: int

    @property
    def negated(self) -> tuple[int, ...]:
        """The negative of the weight, -s 256^j modulo p."""
        return tuple(-x for x in self.turned)


@cache
def encode_modulus(p: int, digits: int) -> EncodeModulus:
    """Return the constants by which integers of 4 or 8 digits become residues modulo p.

    Raises ValueError where residues would leave their range.
    """
    s = root_of_minus_one(p)
    real = tuple(balanced(256**j, p) for j in range(digits))
    turned = tuple(balanced(s * 256**j, p) for j in range(digits))
    largest = sum(128 * (abs(x) + abs(y)) for x, y in zip(real, turned, strict=True))
    shift = -(-largest // p) * p
    reciprocal, correction = _quotient(p)
    off = 2 * shift * abs(reciprocal - 1 / p)
    if 2 * shift >= _MAGIC or p * (0.5 + off) > LARGEST_RESIDUE:
        raise ValueError(f"residues modulo {p} of {digits} digits leave their range")
    return EncodeModulus(real, turned, _MAGIC_BITS + shift, reciprocal, correction, p)


@dataclass(frozen=True)
class ReduceModulus:
    """`ReduceModulus` of moduli.cuh: the weights of a sum's unsigned digits to base 256."""

    weights: tuple[int, ...]
    offset: int
    reciprocal: float
    correction: float
    p: int


@cache
def reduce_modulus(p: int) -> ReduceModulus:
    """Return the constants by which sums, which begin at `SUM_BIAS`, become residues modulo p.

    Raises ValueError where sums would leave their range.
    """
    weights = tuple(balanced(256**j, p) for j in range(4))
    below = 255 * sum(-x for x in weights if x < 0)
    shift = -SUM_BIAS % p + -(-below // p) * p
    largest = shift + 255 * sum(x for x in weights if x > 0)
    reciprocal, correction = _quotient(p)
    off = largest * abs(reciprocal - 1 / p)
    if largest >= _MAGIC or p * (0.5 + off) > LARGEST_RESIDUE:
        raise ValueError(f"sums modulo {p} leave their range")
    return ReduceModulus(weights, _MAGIC_BITS + shift, reciprocal, correction, p)


def _quotient(p: int) -> tuple[float, float]:
    """Return r and c by which (2^23 + z) r + c is 2^23 + z / p.

    The quotient is that by 2^24 / r', an integer r' = 2^24 r, in place of p.
    """
    reciprocal = round(2**24 / p)
    # From 2^22 to 2^23, where fp32 has every half.
    return reciprocal / 2**24, _MAGIC - reciprocal / 2


@dataclass(frozen=True)
class FractionConstants:
    """The constants that turn the residues of C' into C' / P and into C'.

    Attributes:
        real, imag: the digits of w / p for each modulus, where w takes the sum or the difference of
            two residues to a part of C', times the inverse of P / p.
        high, low: P in two fp64 numbers, in units of the second digit.
        tail: P in units of the last digit.
        error: a bound on what C' from the digits is off by, without roundings of the result.
    """

    real: tuple[tuple[int, ...], ...]
    imag: tuple[tuple[int, ...], ...]
    high: float
    low: float
    tail: float
    error: float


@cache
def fraction_constants(count: int, limbs: int) -> FractionConstants:
    """Return the constants of ``count`` moduli with 3 digits (complex64) or 4 (complex128).

    Raises ValueError where digits would leave 32 bits.
    """
    whole = moduli(count)
    widths = _LIMB_BITS[:limbs]
    # Two residues add up to p + 4 at most; each digit below the first is less than 2^19.
    residues = sum(2 * min(LARGEST_RESIDUE, row.p // 2 + 2) for row in whole.rows)
    if residues * 2 ** widths[1] >= 2**31:
        raise ValueError(f"digits of {count} moduli leave 32 bits")
    real = tuple(_digits(row.real, row.p, widths) for row in whole.rows)
    imag = tuple(_digits(row.imag, row.p, widths) for row in whole.rows)
    product = whole.product
    high = float(product)
    low = float(product - int(high))
    # The last digit is rounded, so each term is off by half a unit of it. What fp64 loses of the
    # small terms is below 2^-88 of P: the lower digits are at most 2^-39 of P together, and each of
    # a few operations on them rounds by 2^-53.
    error = residues / 2 * 2.0 ** -sum(widths) + 2.0**-88
    if limbs == 3:
        error += 2.0**-86
    second, last = 2.0 ** -sum(widths[:2]), 2.0 ** -sum(widths)
    return FractionConstants(
        real, imag, high * second, low * second, high * last, error * high * (1 + 2.0**-20)
    )


def _digits(weight: int, p: int, widths: tuple[int, ...]) -> tuple[int, ...]:
    """Return the digits of weight / p, each of its width in bits, the last one rounded."""
    found, rest = [], weight
    for place, bits in enumerate(widths):
        rest <<= bits
        last = place == len(widths) - 1
        digit = (2 * rest + p) // (2 * p) if last else rest // p
        found.append(digit)
        rest -= digit * p
    return tuple(found)


def encode_source(count: int, digits: int) -> str:
    """Return the CUDA C++ of ``kModuli`` and ``kEncodeModuli``."""
    rows = [encode_modulus(p, digits) for p in MODULI[:count]]
    text = [
        f"{{{_words(x.real)}, {_words(x.turned)}, {_words(x.negated)}, {x.offset:#x}u, "
        f"{_word(-x.p)}, {_float(x.reciprocal)}, {_float(x.correction)}}}"
        for x in rows
    ]
    # For a proof: 16 products of an integer, which is below the root of P / 2, and a number below
    # 2^31 fit a signed 64-bit number. Integers of 8 digits are taken modulo the prime first.
    small = digits == 4 and moduli(count).product // 2 << 2 * (31 + 4) < 1 << 126
    return (
        _count(count)
        + f"constexpr bool kSmallIntegers = {literal(small)};\n"
        + _table("EncodeModulus", "kEncodeModuli", text)
    )


def reduce_source() -> str:
    """Return the CUDA C++ of ``kReduceModuli``, of all moduli."""
    rows = [reduce_modulus(p) for p in MODULI]
    text = [
        f"{{{_bytes(x.weights)}, {x.offset:#x}u, {_word(-x.p)}, {_float(x.reciprocal)}, "
        f"{_float(x.correction)}}}"
        for x in rows
    ]
    return _table("ReduceModulus", "kReduceModuli", text)


def decode_source(count: int, limbs: int) -> str:
    """Return the CUDA C++ of the constants of decode.cuh and reconstruction.cuh."""
    found, whole = fraction_constants(count, limbs), moduli(count)
    digits = [
        f"{{{{{_list(real)}}}, {{{_list(imag)}}}}}"
        for real, imag in zip(found.real, found.imag, strict=True)
    ]
    exact = [
        f"{{{{{_list(_limbs(row.rest))}}}, {row.p}, {row.real}, {row.imag}}}" for row in whole.rows
    ]
    doubles = {
        "kProductHigh": found.high, "kProductLow": found.low, "kProductTail": found.tail,
        "kFractionError": found.error,
    }  # fmt: skip
    return (
        _count(count)
        + f"struct DecodeModulus {{ uint32 real[{limbs}], imag[{limbs}]; }};\n"
        + _table("DecodeModulus", "kDecodeModuli", digits)
        + _table("ExactModulus", "kExactModuli", exact)
        + f"__constant__ const uint32 kProduct[4] = {{{_list(_limbs(whole.product))}}};\n"
        + "".join(f"constexpr double {k} = {v.hex()};\n" for k, v in doubles.items())
    )


def _count(count: int) -> str:
    return f"constexpr int kModuli = {count};\n"


def _table(kind: str, name: str, rows: list[str]) -> str:
    return (
        f"__constant__ const {kind} {name}[{len(rows)}] = {{\n    " + ",\n    ".join(rows) + "};\n"
    )


def _limbs(number: int) -> tuple[int, ...]:
    return tuple(number >> 32 * i & 0xFFFFFFFF for i in range(4))


def _list(values: tuple[int, ...]) -> str:
    return ", ".join(f"{_word(x)}" for x in values)


def _words(digits: tuple[int, ...]) -> str:
    low, high = digits[:4], digits[4:]
    return f"{{{_bytes(low)}, {_bytes(high)}}}"


def _bytes(digits: tuple[int, ...]) -> str:
    return f"{sum((x & 0xFF) << 8 * j for j, x in enumerate(digits)):#x}u"


def _word(x: int) -> str:
    return f"{x & 0xFFFFFFFF:#x}u"


def _float(x: float) -> str:
    return f"{float(np.float32(x)).hex()}f"
