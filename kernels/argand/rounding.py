"""Rounding of operands on the CPU, bit for bit as the GPU kernels do it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from argand.operand_format import Format, Rounding
from argand.precision import FP32, Precision

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

_CHUNK = 1 << 16
"""Floats handled at a time: two buffers of them stay in a core's L2."""
LARGEST_SHIFT = 126
"""Largest power of two by which a line is scaled, up or down."""
_QUIET_NAN = np.uint32(0x7FC00000)
_EXPONENT = np.uint32(0x7F800000)


def split(x: Array, precision: Precision, exponents: Array | None = None) -> list[Array]:
    """Return the terms that stand for x at a precision, each of x's shape.

    Args:
        x: real or complex; real and imaginary parts are rounded apart.
        precision: what to round to. At fp64 and fp32 the one term is x in the output's type (x
            itself where it has it already).
        exponents: powers of two that x is multiplied by first, as exponents, broadcast against it;
            not at fp64 and fp32. Cheaper than a product beforehand, which would take memory of its
            own.

    Returns:
        Contiguous arrays of ``precision.output`` (or its real type), the largest term first. Where
        a term is not finite the further ones are 0. NaN stays NaN, and what is too large becomes
        an infinity, as in the hardware's conversion.
    """
    dtype = np.dtype(precision.output if x.dtype.kind == "c" else precision.real_output)
    if precision.exact_operands:
        return [x.astype(dtype, copy=False)]
    with np.errstate(over="ignore"):
        remainder = np.array(x, dtype=dtype, order="C")
        if exponents is not None:
            remainder *= power_of_two(exponents)
    flat = remainder.reshape(-1).view(np.float32)
    terms = [np.empty_like(remainder) for _ in precision.roundings]
    flats = [term.reshape(-1).view(np.float32) for term in terms]
    for start in range(0, flat.size, _CHUNK):
        rest = flat[start : start + _CHUNK]
        for index, rounding in enumerate(precision.roundings):
            term = flats[index][start : start + _CHUNK]
            _round(rest, precision.operand, rounding, term)
            if index + 1 < precision.terms:
                np.subtract(rest, term, out=rest, where=np.isfinite(term))
                rest[~np.isfinite(term)] = 0
    return terms


def round_operand(x: Array, precision: Precision) -> Array:
    """Return x as a precision holds it: the sum of its terms, in the output's type."""
    terms = split(x, precision)
    if len(terms) == 1:
        return terms[0]
    total = terms[-1].copy()
    for term in reversed(terms[:-1]):
        total += term
    return total


def encode(values: Array, operand: Format) -> npt.NDArray[Any]:
    """Return the bits of numbers that a format holds exactly, as unsigned integers of its size.

    They are a sign, an exponent and a fraction, as fp32 has them with more bits.
    """
    bits, fraction = 8 * operand.bytes, 8 * operand.bytes - 1 - operand.exponent_bits
    # Multiplied so, what is subnormal in the format is subnormal in fp32.
    factor = np.float32(2.0 ** (FP32.min_exponent - operand.min_exponent))
    moved = (np.asarray(values, np.float32) * factor).view(np.uint32)
    magnitude = moved >> np.uint32(FP32.significand - 1 - fraction) & np.uint32(2 ** (bits - 1) - 1)
    return (magnitude | moved >> np.uint32(31) << np.uint32(bits - 1)).astype(f"uint{bits}")


def _round(x: FloatArray, operand: Format, rounding: Rounding, out: FloatArray) -> None:
    """Set out to x rounded to an operand format; both are contiguous."""
    if operand.min_exponent == FP32.min_exponent:
        dropped = FP32.significand - operand.significand
        _drop_bits(x.view(np.uint32), dropped, rounding, out.view(np.uint32))
    else:
        _round_in_range(x, operand, out)
    nan = np.isnan(x)
    if nan.any():
        out.view(np.uint32)[nan] = _QUIET_NAN


def _round_in_range(x: FloatArray, operand: Format, out: FloatArray) -> None:
    """Round to nearest, ties to even, to a format of fewer exponents than fp32 has."""
    ends = np.array([2.0**operand.min_exponent, operand.largest], np.float32).view(np.uint32)
    # fp32 numbers near `coarse` lie a unit of the last place apart, so a sum is rounded to it.
    coarse = np.clip(x.view(np.uint32) & _EXPONENT, *(ends & _EXPONENT))
    shift = FP32.significand - operand.significand
    coarse += np.uint32((shift << 23) + (1 << 22))  # times 1.5 2^shift
    with np.errstate(invalid="ignore"):  # signalling NaN
        np.add(x, coarse.view(np.float32), out=out)
        np.subtract(out, coarse.view(np.float32), out=out)
    np.copysign(out, x, out=out)
    out[np.abs(out) > operand.largest] *= np.inf


def _drop_bits(
    bits: npt.NDArray[np.uint32], dropped: int, rounding: Rounding, out: npt.NDArray[np.uint32]
) -> None:
    """Round fp32 bit patterns to ``24 - dropped`` significant bits; a carry moves the exponent."""
    kept = np.uint32((0xFFFFFFFF << dropped) & 0xFFFFFFFF)
    if rounding == "half_ulp_truncate":
        np.add(bits, np.uint32(1 << (dropped - 1)), out=out)
        np.bitwise_and(out, kept, out=out)
    elif rounding == "nearest_even":
        np.right_shift(bits, np.uint32(dropped), out=out)
        np.bitwise_and(out, np.uint32(1), out=out)
        np.add(out, np.uint32((1 << (dropped - 1)) - 1), out=out)
        np.add(out, bits, out=out)
        np.bitwise_and(out, kept, out=out)
    else:
        np.bitwise_and(bits, kept, out=out)


def scale_exponents(x: Array, axis: int, operand: Format) -> npt.NDArray[np.int32]:
    """Return s for each line of x along ``axis``, so that 2^s x fills a format's range.

    The largest finite component of 2^s x lies in [2^e, 2^(e + 1)) with e of
    `Format.scaled_exponent`, 14 for fp16; `Precision.full_range` says how far below it precision is
    lost. ``axis`` is kept with length 1. Lines of zeros get 0. s stays within
    +-`LARGEST_SHIFT`, so that 2^s is a normal fp32 number.
    """
    dtype = np.float64 if x.dtype in (np.float64, np.complex128) else np.float32
    components = x.view(dtype) if x.dtype.kind == "c" and x.flags.c_contiguous else None
    if components is not None and axis == -2:
        largest = _largest_finite(components, -2)
        largest = largest.reshape(*largest.shape[:-1], largest.shape[-1] // 2, 2).max(axis=-1)
    elif components is not None:
        largest = _largest_finite(components, axis)
    else:
        largest = np.maximum(_largest_finite(x.real, axis), _largest_finite(x.imag, axis))
    _, exponent = np.frexp(largest)
    shift = np.clip(operand.scaled_exponent + 1 - exponent, -LARGEST_SHIFT, LARGEST_SHIFT)
    return np.where(largest > 0, shift, 0).astype(np.int32)


def _largest_finite(x: Array, axis: int) -> Array:
    magnitude = np.abs(x)
    largest = magnitude.max(axis=axis, keepdims=True, initial=0)
    if not np.isfinite(largest).all():
        magnitude[~np.isfinite(magnitude)] = 0
        largest = magnitude.max(axis=axis, keepdims=True, initial=0)
    return np.asarray(largest)


def power_of_two(exponents: npt.NDArray[np.int32]) -> FloatArray:
    """Return 2^s in fp32 for exponents within +-126, exactly."""
    return ((exponents + np.int32(127)) << np.int32(23)).astype(np.int32).view(np.float32)
