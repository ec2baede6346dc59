"""Operands of a product: their ops, their kinds, and how backends take them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from argand.checks import as_array, check_one_of, refuse_misaligned
from argand.device import Backend, is_cuda_array
from argand.gemm.pairs import Pairs, pairs
from argand.precision import Precision

Op = Literal["N", "T", "C"]
OPS: tuple[Op, ...] = get_args(Op)
Side = Literal["a", "b"]
"""Left or right of the product."""
SIDES: tuple[Side, ...] = get_args(Side)

READS_PAIRS: Mapping[Backend, bool] = MappingProxyType({"cpu": False, "cuda": True})
"""Whether a backend's kernels read pairs of a precision's own format in place."""


_NO_NUMBERS = "OSUmM"
"""Kinds of NumPy's types that are objects, text and times."""


def as_operand(x: Any, name: str) -> Any:
    """Return x as an array or as `Pairs`: structured arrays become pairs, lists NumPy arrays.

    Raises ValueError for a structured array that is no `Pairs`, for lists that are no array and for
    an array on a GPU that kernels cannot read (`refuse_misaligned`), TypeError for what holds no
    numbers; all by the ``name``.
    """
    if isinstance(x, Pairs) or is_cuda_array(x):
        refuse_misaligned(name, x)
        return x
    x = as_array(x, name)
    if x.dtype.kind in _NO_NUMBERS or (x.dtype.kind == "V" and x.dtype.names is None):
        raise TypeError(f"{name} must be numbers, got {x.dtype}")
    return x if x.dtype.names is None else pairs(x)


def on_gpu(x: Any) -> bool:
    """Return whether an array or pairs are on a GPU."""
    return x.on_gpu if isinstance(x, Pairs) else is_cuda_array(x)


def native_pairs(precision: Precision, x: Any, backend: Backend) -> Any:
    """Return x as a backend reads it: arrays, and pairs only where its kernels read them.

    Kernels read pairs of the precision's own 16-bit format where it has one term, and of int8,
    which each of these formats holds (``READS_PAIRS``); all others become complex64, which holds
    each of them exactly.
    """
    if not isinstance(x, Pairs):
        return x
    native = (
        READS_PAIRS[backend] and x.format in (precision.operand.name, "int8")
        and precision.operand.bytes == 2 and precision.terms == 1
    )  # fmt: skip
    return x if native else x.to_complex64()


def oriented_shape(
    shape: tuple[int, ...], op: str, *, name: str, op_name: str = "op"
) -> tuple[int, int]:
    """Return rows and columns of op(x) for an x of this shape.

    ``name`` and ``op_name`` are what messages call x and its op. Raises ValueError for an unknown
    op or fewer than two axes.
    """
    if len(shape) < 2:
        column = f": a vector is {name}[:, None], a matrix of one column" if shape else ""
        raise ValueError(f"{name} must have at least 2 axes, got shape {shape}{column}")
    check_one_of(op_name, op, OPS)
    rows, columns = shape[-2:]
    return (rows, columns) if op == "N" else (columns, rows)
