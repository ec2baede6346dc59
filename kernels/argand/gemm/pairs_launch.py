"""Conversion of pairs for kernels: to words of both parts, int8 to fp16 or bf16."""

from __future__ import annotations

from typing import Any

import cupy

from argand.gemm.pairs import PAIR_FORMATS, Pairs
from argand.precision import FP16

_AS_BF16 = cupy.ElementwiseKernel(
    "int8 x", "uint16 bits", "bits = __float_as_uint((float)x) >> 16", "argand_int8_as_bf16"
)
_WORDS = {1: "uint16", 2: "uint32"}
"""The type that holds both parts of a number, by the bytes of one."""


def as_halves(x: Pairs, format: str) -> Pairs:
    """Return pairs of int8 as fp16 or bf16, which is exact; pairs of the format as they are."""
    if x.format == format:
        return x
    assert x.format == "int8"
    if format == FP16.name:
        return Pairs(x.array.astype("float16", order="C"), format)
    found = cupy.empty(x.array.shape, PAIR_FORMATS[format])
    _AS_BF16(x.array, found)
    return Pairs(found, format)


def words(x: Pairs) -> Any:
    """Return pairs of 8 or 16 bits as one word each, in place where each is an aligned word."""
    parts = x.array if in_words(x) else x.array.copy(order="C")
    return parts.view(_WORDS[parts.itemsize])[..., 0]


def in_words(x: Pairs) -> bool:
    """Return whether real and imaginary part are adjacent, at multiples of both parts' bytes."""
    parts = x.array
    word, together = 2 * parts.itemsize, parts.strides[-1] == parts.itemsize
    return bool(together and not any(at % word for at in (parts.data.ptr, *parts.strides[:-1])))
