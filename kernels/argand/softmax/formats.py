"""Kinds of elements that a softmax reads and writes, and the array types that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from argand.checks import check_one_of
from argand.precision import BF16, FP16, FP32, FP64, Precision

Operation = Literal["softmax", "log_softmax", "logsumexp"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)

REAL_KINDS: Mapping[str, str] = MappingProxyType(
    {FP64.name: "float64", FP32.name: "float32", FP16.name: "float16", BF16.name: "uint16"}
)
"""The array type of each kind of real number; uint16 holds the bits of bf16, which has no type."""
COMPLEX_KINDS = ("complex64", "complex128")
"""Kinds whose squared magnitude is the input."""
ELEMENT_BYTES: Mapping[str, int] = MappingProxyType(
    {FP64.name: 8, FP32.name: 4, FP16.name: 2, BF16.name: 2, "complex64": 8, "complex128": 16}
)
_KINDS_BY_TYPE = {
    **{dtype: kind for kind, dtype in REAL_KINDS.items() if kind != BF16.name},
    **{kind: kind for kind in COMPLEX_KINDS},
}


def output_kind(precision: Precision, output: str | None) -> str:
    """Return the kind of a result: ``output``, or the precision's own where that is None.

    Raises ValueError for an unknown kind.
    """
    if output is None:
        return FP64.name if precision.real_output == "float64" else FP32.name
    check_one_of("output", output, REAL_KINDS)
    return output


def as_kind(x: Any, format: str | None, power: bool, precision: Precision) -> tuple[Any, str]:
    """Return x as an array of one of the kinds, and that kind.

    bf16 comes as uint16 with ``format="bf16"``, or as an array of ml_dtypes' bfloat16. Integers,
    booleans and other real types become the precision's result type.

    Raises ValueError for a type that no kind holds, and for complex numbers without ``power``.
    """
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    dtype = str(x.dtype)
    if dtype == "bfloat16":
        x, dtype, format = x.view("uint16"), "uint16", BF16.name
    if format is not None:
        if not isinstance(format, str) or REAL_KINDS.get(format) != dtype:
            raise ValueError(
                f"format must be that of x, bf16 for the bits in uint16, got {format!r} for {dtype}"
            )
        kind = format
    elif power and dtype in COMPLEX_KINDS:
        kind = dtype
    elif x.dtype.kind in "fiub":
        if dtype not in _KINDS_BY_TYPE:
            x = x.astype(precision.real_output)
        kind = _KINDS_BY_TYPE[str(x.dtype)]
    else:
        raise ValueError(
            f"x must be real with at least 1 axis, or complex with power=True, "
            f"got {x.dtype} of shape {x.shape}"
        )
    if power and kind not in COMPLEX_KINDS:
        raise ValueError(f"x must be complex64 or complex128 where power is asked for, got {dtype}")
    return x, kind


def bf16_bits(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return float32 rounded to bf16, to nearest, ties to even, as uint16; NaN stays NaN."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    rounded[np.isnan(x)] = 0x7FC0
    return rounded


def bf16_values(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the float32 numbers whose upper halves these are."""
    wide = bits.astype(np.uint32)
    wide <<= np.uint32(16)
    return wide.view(np.float32)
