"""Calls that were made before: their launches are looked up by the form of their arguments.

A product of small matrices takes the card less time than checking and planning take Python. So what
a call needs is kept under its shapes, strides, alignments and options, and a call of the same form
only fills in addresses.
"""

from __future__ import annotations

from typing import Any

import cupy

from argand import tuning
from argand.cuda_launch import GemmLaunch, fixed
from argand.packing import Packed
from argand.pairs import Pairs

Key = tuple[Any, ...]
_MOST = 4096
_kept: dict[Key, tuple[GemmLaunch, tuple[int, ...]]] = {}
_ALIGNMENTS = 31
"""Low bits of an address that can matter to a plan."""


def key_of(operands: tuple[Any, ...], options: tuple[Any, ...]) -> Key | None:
    """What identifies calls of one form; None for those that are looked at anew each time.

    ``operands`` are a, b, c and out, ``options`` everything else that was given.
    """
    device = cupy.cuda.runtime.getDevice()
    forms: list[Any] = []
    for x in operands:
        if x is None:
            forms.append(None)
        elif type(x) is cupy.ndarray:
            if x.dtype.char != "F" or x.data.device_id != device:
                return None
            forms.append((x.shape, x.strides, x.data.ptr & _ALIGNMENTS))
        elif type(x) is Pairs:
            array = x.array
            if array.data.device_id != device:
                return None
            forms.append((x.format, array.shape, array.strides, array.data.ptr & _ALIGNMENTS))
        elif type(x) is Packed:
            planes = getattr(x.backend_data, "planes", None)
            if planes is None or planes.array.data.device_id != device:
                return None
            forms.append((x.shape, x.precision, x.side, planes.batches, planes.unscale is None))
        else:
            return None
    key = (*forms, *options, device, fixed(), tuning.generation())
    try:
        hash(key)
    except TypeError:  # a rounding given as a list
        return None
    return key


def remember(key: Key, launch: GemmLaunch, shape: tuple[int, ...]) -> None:
    """Keep a launch whose operands need no copies and whose result goes where the caller said."""
    if len(_kept) >= _MOST:
        _kept.clear()
    _kept[key] = (launch, shape)


def repeat(key: Key, a: Any, b: Any, c: Any, out: Any) -> Any:
    """The result of a call of a form that was seen; None where it was not, or arrays overlap."""
    found = _kept.get(key)
    if found is None:
        return None
    launch, shape = found
    operands = [_at(x) for x in (a, b)]
    if out is None:
        out = cupy.empty(shape, cupy.complex64)
    else:
        target = _extent(out)
        for x in (a, b, None if c is out else c):
            if x is not None and type(x) is not Packed:
                low, high = _extent(x.array if type(x) is Pairs else x)
                if low < target[1] and target[0] < high:
                    return None
    address = out.data.ptr
    launch(operands[0], operands[1], address if c is None else c.data.ptr, address)
    return out


def _at(x: Any) -> Any:
    if type(x) is Packed:
        return x.backend_data.planes
    return x.array.data.ptr if type(x) is Pairs else x.data.ptr


def _extent(x: Any) -> tuple[int, int]:
    """The first and one past the last byte that an array touches."""
    low = high = x.data.ptr
    for length, stride in zip(x.shape, x.strides, strict=True):
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high + x.itemsize
