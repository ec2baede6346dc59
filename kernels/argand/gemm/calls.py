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

from argand.gemm import tuned as tuning
from argand.gemm.launch import forced
from argand.gemm.packed import Packed
from argand.gemm.pairs import HALF_FORMATS, PAIR_FORMATS, Pairs
from argand.runtime.call_cache import Remembered

Key = tuple[Any, ...]
Launch = Callable[[Any, Any, int, int], None]
"""Takes the addresses (or planes) of a and b, and the addresses of c and out."""
Extent = tuple[int, int]
"""The first and one past the last byte that an array touches, from its address."""
_kept: Remembered[Key, _Kept] = Remembered()
_ndarray = cupy.ndarray
_current_device = cupy.cuda.runtime.getDevice
_ALIGNMENTS = 31
"""Low bits of an address that can matter to a plan."""


def key_of(operands: tuple[Any, ...], options: tuple[Any, ...]) -> Key | None:
    """What identifies calls of one form; None for those that are looked at anew each time.

    ``operands`` are a, b, c and out, ``options`` everything else that was given.
    """
    a, b, c, out = operands
    if c is None and type(a) is type(b) is _ndarray and (out is None or type(out) is _ndarray):
        # Nearly all calls, without a loop: this is a good part of what a call takes Python.
        at_a, at_b = a.data, b.data
        return (
            a.dtype.char, a.shape, a.strides, at_a.ptr & _ALIGNMENTS, at_a.device_id,
            b.dtype.char, b.shape, b.strides, at_b.ptr & _ALIGNMENTS, at_b.device_id,
            None if out is None else (
                out.dtype.char, out.shape, out.strides, out.data.ptr & _ALIGNMENTS,
                out.data.device_id,
            ),
            options, _current_device(), forced.value, tuning.TABLE.generation,
        )  # fmt: skip
    forms: list[Any] = []
    for x in operands:
        if type(x) is _ndarray:
            memory = x.data
            forms.append((
                x.dtype.char, x.shape, x.strides, memory.ptr & _ALIGNMENTS, memory.device_id,
            ))  # fmt: skip
        elif x is None:
            forms.append(None)
        else:
            form = _other_form(x)
            if form is None:
                return None
            forms.append(form)
    return (*forms, options, _current_device(), forced.value, tuning.TABLE.generation)


def _other_form(x: Any) -> Any:
    """The form of an operand that is no array."""
    if type(x) is Pairs:
        array = x.array
        memory = array.data
        return x.format, array.shape, array.strides, memory.ptr & _ALIGNMENTS, memory.device_id
    if type(x) is Packed:
        planes = getattr(x.backend_data, "planes", None)
        if planes is not None:
            device = planes.memory.data.device_id
            return x.shape, x.precision, x.side, planes.batches, planes.copy is None, device
    return None


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
    place is given. A form of which an array is on another device than the current one is not kept.
    """
    try:
        hash(key)
    except TypeError:
        return
    if all(_device_of(x) == _current_device() for x in operands if x is not None):
        _kept[key] = _Kept(launch, shape, tuple(_extent(x) for x in operands), output)


def _device_of(x: Any) -> int:
    """Of an array, pairs, or what a packed operand keeps."""
    planes = getattr(x, "planes", None)
    array = x.array if type(x) is Pairs else x if planes is None else planes.memory
    return int(array.data.device_id)


def repeat(key: Key, a: Any, b: Any, c: Any, out: Any) -> Any:
    """The result of a call of a form that was seen; None where it was not, or arrays overlap."""
    try:
        found = _kept.get(key)
    except TypeError:  # an option given as a list
        return None
    if found is None:
        return None
    # Of `_at` what is taken by nearly all calls.
    a_at = a.data.ptr if type(a) is _ndarray else _at(a)
    b_at = b.data.ptr if type(b) is _ndarray else _at(b)
    if out is None:
        out = empty(found.shape, found.output)
        address = _at(out)
    else:
        address = out.data.ptr if type(out) is _ndarray else _at(out)
        of_a, of_b, of_c, of_out = found.extents
        assert of_out is not None
        low, high = of_out[0] + address, of_out[1] + address
        if of_a is not None and a_at + of_a[0] < high and low < a_at + of_a[1]:
            return None
        if of_b is not None and b_at + of_b[0] < high and low < b_at + of_b[1]:
            return None
        if c is not None and c is not out and of_c is not None:
            start = _at(c)
            if start + of_c[0] < high and low < start + of_c[1]:
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
