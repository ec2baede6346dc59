"""A kept call: how it runs again, what it runs, and the operands that its result must not touch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cupy
import numpy as np

Run = Callable[..., Any]
"""Queues a call's work on the current stream, given the places of its operands and its result.

It returns NotImplemented, and does nothing, where it does not serve these operands.
"""
Start = Callable[[tuple[int, ...], int], None]
"""Queues a launch at its addresses on a stream."""
Addresses = Callable[..., tuple[int, ...]]
"""Returns the addresses of a launch from the places of a call."""
Extent = tuple[int, int]
"""The first byte that an array touches and one past the last, from its address."""
_ndarray = cupy.ndarray


class Chosen(NamedTuple):
    """Choice of a call: its kernels, their plan, and the entry of its tuned plan in the table.

    ``library_bytes`` are those of a library's workspace, which no plan holds.
    """

    kernels: str = ""
    plan: Any = None
    entry: str | None = None
    library_bytes: int = 0


UNKNOWN = Chosen()


class StreamRun(NamedTuple):
    """A run that takes a stream after the places, in place of CuPy's current one.

    Calls on tensors know their stream, and to ask CuPy for its own takes longer. A plan keeps the
    ``addresses`` of places that come again, and launches at them by ``start``.
    """

    run: Run
    start: Start
    addresses: Addresses


def no_start(addresses: tuple[int, ...], stream: int) -> None:
    """Stand for the start of a run that takes no stream."""
    raise AssertionError("a run that takes no stream")


class KeptCall(NamedTuple):
    """A kept call: how to run it again, and the checks that each repetition makes.

    ``forbidden`` has the operands that the result must not overlap: the operand's index, between
    which two distances from the result it overlaps, and whether it may be the result. There are
    none where callers give no result. ``result_bytes`` are those of a result that is an array; 0
    where it is no array, or empty. ``stream_run`` has ``run`` where that takes a stream.
    """

    run: Run
    shape: tuple[int, ...]
    output: str
    forbidden: tuple[tuple[int, int, int, bool], ...]
    chosen: Chosen
    result_bytes: int
    stream_run: StreamRun | None = None


def bytes_of(shape: tuple[int, ...], output: str) -> int:
    """Return the bytes of an array; 0 of what NumPy has no type for."""
    try:
        return math.prod(shape) * np.dtype(output).itemsize
    except TypeError:
        return 0


def overlaps(call: KeptCall, places: Sequence[Any]) -> bool:
    """Return whether a call would write what it has yet to read, at the places of `look`."""
    out = places[-1]
    if type(out) is not int:
        out = _address(out)
    for number, below, above, in_place in call.forbidden:
        place = places[number]
        distance = (place if type(place) is int else _address(place)) - out
        if below < distance < above and not (in_place and distance == 0):
            return True
    return False


def _address(place: Any) -> int:
    return int(place.array.data.ptr)


def extent(x: Any) -> Extent | None:
    """Return the extent of an array, or of an object's ``array``; None for anything else."""
    array = x if type(x) is _ndarray else getattr(x, "array", x)
    if type(array) is not _ndarray:
        return None
    low = high = 0
    for length, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high + int(array.itemsize)
