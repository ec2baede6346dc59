"""Calls that were made before: their launches are looked up by the form of their arguments.

A product of small matrices takes the card less time than checking and planning take Python. So what
a call needs is kept under its shapes, strides, alignments and options, and a call of the same form
only fills in addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cupy

from argand import tuning
from argand.cuda_launch import forced
from argand.packing import Packed
from argand.pairs import HALF_FORMATS, PAIR_FORMATS, Pairs
from argand.remembered import Remembered

Key = tuple[Any, ...]
Launch = Callable[[Any, Any, int, int], None]
"""Takes the addresses (or planes) of a and b, and the addresses of c and out."""
Extent = tuple[int, int]
"""The first and one past the last byte that an array touches, from its address."""
_kept: Remembered[Key, _Kept] = Remembered()
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
            if x.data.device_id != device:
                return None
            forms.append((x.dtype.char, x.shape, x.strides, x.data.ptr & _ALIGNMENTS))
        elif type(x) is Pairs:
            array = x.array
            if array.data.device_id != device:
                return None
            forms.append((x.format, array.shape, array.strides, array.data.ptr & _ALIGNMENTS))
        elif type(x) is Packed:
            planes = getattr(x.backend_data, "planes", None)
            if planes is None or planes.memory.data.device_id != device:
                return None
            forms.append((x.shape, x.precision, x.side, planes.batches))
        else:
            return None
    return (*forms, *options, device, forced.value, tuning.TABLE.generation)


@dataclass(frozen=True)
class _Kept:
    """A launch, the result's shape, the extents of a, b, c and out where overlaps matter, and the
    result's type, or format where it is pairs.
    """  # noqa: D205

    launch: Launch
    shape: tuple[int, ...]
    extents: tuple[Extent | None, ...]
    output: str


def remember(
    key: Key,
    launch: Launch,
    shape: tuple[int, ...],
    operands: tuple[Any, ...],
    output: str,
) -> None:
    """Keep a launch whose operands need no copies and whose result goes where the caller said.

    ``operands`` are a, b, c and out as they were given; ``output`` is what `empty` makes where no
    place is given.
    """
    try:
        hash(key)
    except TypeError:
        return
    _kept[key] = _Kept(launch, shape, tuple(_extent(x) for x in operands), output)


def repeat(key: Key, a: Any, b: Any, c: Any, out: Any) -> Any:
    """The result of a call of a form that was seen; None where it was not, or arrays overlap."""
    try:
        found = _kept.get(key)
    except TypeError:  # an option given as a list
        return None
    if found is None:
        return None
    a_at, b_at = _at(a), _at(b)
    if out is None:
        out = empty(found.shape, found.output)
        address = _at(out)
    else:
        address = _at(out)
        low, high = found.extents[3]  # type: ignore[misc]
        low, high = low + address, high + address
        for x, extent in zip((a, b, None if c is out else c), found.extents, strict=False):
            if x is not None and extent is not None:
                start = _at(x)
                if start + extent[0] < high and low < start + extent[1]:
                    return None
    found.launch(a_at, b_at, address if c is None else c.data.ptr, address)
    return out


def empty(shape: tuple[int, ...], output: str) -> Any:
    """An array of this type, or pairs of ``fp16`` or ``bf16``, that hold nothing yet."""
    if output not in HALF_FORMATS:
        return cupy.empty(shape, output)
    return Pairs(cupy.empty((*shape, 2), PAIR_FORMATS[output]), output)


def _at(x: Any) -> Any:
    if type(x) is Packed:
        return x.backend_data.planes
    return x.array.data.ptr if type(x) is Pairs else x.data.ptr


def _extent(x: Any) -> Extent | None:
    """None for packed operands, which lie in memory of their own, and for what is missing."""
    array = x.array if type(x) is Pairs else x
    if type(array) is not cupy.ndarray:
        return None
    low = high = 0
    for length, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high + int(array.itemsize)
