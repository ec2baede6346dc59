"""Numbers and layouts that functions of arrays stumble over."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from argand import PRECISIONS, Precision

from benchmarks.planted.campaign import UNPROVEN
from workflow.accuracy import Accuracy

Array = npt.NDArray[Any]
Rng = np.random.Generator
Verdict = str
"""The fault of a call; empty where there is none."""
LENGTHS = (0, 1, 2, 3, 5, 8, 17, 33)


class _Subclass(np.ndarray):
    """An array that is not NumPy's own class."""


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, largest: float) -> Array:
    """Return the numbers of one style or of a mixture, their moduli at most about ``largest``.

    Styles: normal, denormal, huge, of wide range, zeros of both signs, small integers; and in one
    of four arrays some NaN and infinities.
    """
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return rng.integers(-4 if kind.kind == "i" else 0, 5, shape).astype(kind)
    count = 2 if kind.kind == "c" else 1
    parts = rng.standard_normal((*shape, count))
    real = np.finfo(kind)
    tiny = float(real.smallest_subnormal)
    style = int(rng.integers(6))
    if style == 1:
        parts = np.round(parts * 8) * tiny
    elif style == 2:
        parts *= largest / 8
    elif style == 3:
        parts *= 10.0 ** rng.uniform(
            np.log10(max(tiny, 1e-300)), np.log10(largest / 8), parts.shape
        )
    elif style == 4:
        parts = np.copysign(np.where(rng.random(parts.shape) < 0.8, 0, parts), parts)
    elif style == 5:
        parts = np.round(parts)
    if rng.random() < 0.25:
        odd = rng.choice([np.nan, np.inf, -np.inf], parts.shape)
        parts = np.where(rng.random(parts.shape) < 0.05, odd, parts)
    with np.errstate(all="ignore"):
        typed = np.ascontiguousarray(parts, real.dtype)
    return typed.view(kind)[..., 0]


def arranged(rng: np.random.Generator, x: Array) -> tuple[str, Array]:
    """Return the same numbers in another layout, and its name."""
    way = int(rng.integers(10))
    if way == 1:
        return "Fortran", np.asfortranarray(x)
    if way == 2 and x.ndim:
        room = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        room[..., ::2] = x
        return "every other", room[..., ::2]
    if way == 3 and x.ndim:
        return "reversed", np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    if way == 4:
        fixed = x.copy()
        fixed.setflags(write=False)
        return "read-only", fixed
    if way == 6:
        return "swapped bytes", x.astype(x.dtype.newbyteorder())
    if way == 7:
        return "subclass", x.view(_Subclass)
    if way == 8 and x.ndim:
        return "rows reversed", np.ascontiguousarray(x[::-1])[::-1]
    if way == 9 and x.ndim > 1:
        order = rng.permutation(x.ndim)
        return "axes moved", np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
    if way == 5:
        bytes_ = np.zeros(x.nbytes + 1, np.uint8)
        odd = bytes_[1:].view(x.dtype).reshape(x.shape)
        odd[...] = x
        return "unaligned", odd
    return "plain", x


def target(
    rng: np.random.Generator, x: Array, shape: tuple[int, ...], dtype: str
) -> tuple[str, Array, Array | None]:
    """Return a name, x, and an ``out`` of this shape and type: none, its own, or overlapping x.

    Where it overlaps, x is a copy in the same memory.
    """
    way = int(rng.integers(5))
    if way == 1:
        return "out", x, np.full(shape, np.nan, dtype)
    if way == 2 and shape:
        return "out every other", x, np.full((*shape[:-1], 2 * shape[-1]), np.nan, dtype)[..., ::2]
    if way == 3 and x.shape == shape and str(x.dtype) == dtype:
        own = x.copy()
        return "out is x", own, own
    if way == 4:
        size = int(np.prod(shape, dtype=np.int64))
        shift = int(rng.integers(1, 1 + max(1, size // 2))) * np.dtype(dtype).itemsize
        room = np.zeros(max(x.nbytes, size * np.dtype(dtype).itemsize) + shift, np.uint8)
        first = room[: x.nbytes].view(x.dtype).reshape(x.shape)
        first[...] = x
        out = room[shift : shift + size * np.dtype(dtype).itemsize].view(dtype).reshape(shape)
        return "out overlaps", first, out
    return "no out", x, None


def any_precision(rng: Rng) -> Precision:
    """Return a row of `PRECISIONS`."""
    return PRECISIONS[str(rng.choice(list(PRECISIONS)))]


def verdict(found: Accuracy) -> Verdict:
    """Return the fault of a result, as text; "" where it has none, or its bound proves nothing."""
    return "" if found.verified or UNPROVEN in found.reason else found.reason
