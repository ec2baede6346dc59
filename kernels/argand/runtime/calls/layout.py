"""Layouts of GPU arrays, for the calls of all operations: strides, batches, results, overlaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cupy

from argand.runtime.calls.call_cache import SEVERAL, current_device
from argand.runtime.memory.captured_memory import capture_of, is_captured
from argand.runtime.memory.graph_memory import CAPTURE


def device_of(array: Any, *others: Any) -> Any:
    """Return a context in which an array's GPU is the current one, for a call that computes there.

    Where the current stream is captured, arrays that the call makes there are the graph's.

    Raises TypeError where one of the other arrays, if it is not None, is on another GPU: a kernel
    that reads memory of a GPU that is no peer ends CUDA in the process.
    """
    index = int(array.device.id)
    for other in others:
        if other is not None and other.device.id != index:
            raise TypeError(f"arrays must be on one GPU, got GPUs {index} and {other.device.id}")
    if CAPTURE.taken is None and (not SEVERAL or current_device() == index):
        stream = cupy.cuda.get_current_stream().ptr
        if is_captured(stream):
            return _memory_of_capture(stream)
    return cupy.cuda.Device(index)


@contextmanager
def _memory_of_capture(stream: int) -> Iterator[None]:
    """Take arrays from the memory of a captured stream's graph, in this context.

    Operands are converted and copied into arrays that are gone after the call, but each replay
    writes and reads them again.
    """
    capture = capture_of(stream)
    if capture is None:  # another thread has ended it
        yield
        return
    with cupy.cuda.using_allocator(lambda nbytes: capture.memory(nbytes, stream)):
        yield


def on_device(call: Callable[[Any], None], device: Any) -> Callable[[Any], None]:
    """Return a call of one array that is made on a GPU, whichever is the current one."""
    if not SEVERAL:
        return call

    def made(array: Any) -> None:
        if current_device() == device.id:
            call(array)
            return
        with device:
            call(array)

    return made


@dataclass(frozen=True)
class Layout:
    """Layout of a matrix (batch, rows, columns) at any address.

    Strides are in elements; a stride of 0 repeats. ``aligned`` is the largest power of two up to 32
    that divides the address in bytes, ``item`` the bytes of an element.
    """

    rows: int
    columns: int
    row_stride: int
    column_stride: int
    batch_stride: int
    item: int
    aligned: int

    @property
    def transposed(self) -> Layout:
        """The layout with rows and columns exchanged."""
        return Layout(
            self.columns, self.rows, self.column_stride, self.row_stride,
            self.batch_stride, self.item, self.aligned,
        )  # fmt: skip

    def in_pairs(self, along_columns: bool) -> bool:
        """Return whether two neighbours along the columns (else the rows) are one aligned word."""
        fast, slow, slow_length = (
            (self.column_stride, self.row_stride, self.rows) if along_columns
            else (self.row_stride, self.column_stride, self.columns)
        )  # fmt: skip
        even = (slow_length == 1 or slow % 2 == 0) and self.batch_stride % 2 == 0
        return fast == 1 and even and self.aligned >= 2 * self.item


def is_k_major(x: Layout) -> bool:
    """Return whether k (the columns) is the contiguous axis; an axis of length 1 never is."""
    if 1 in (x.rows, x.columns):
        return x.columns != 1
    return abs(x.column_stride) <= abs(x.row_stride)


@dataclass(frozen=True)
class Batched:
    """A complex array as kernels index it: (batch, rows, columns) by three strides in elements.

    ``array`` keeps the memory alive and begins at the first element.
    """

    array: Any
    rows: int
    columns: int
    row_stride: int
    column_stride: int
    batch_stride: int

    @property
    def transposed(self) -> Batched:
        """The array with rows and columns exchanged."""
        return Batched(
            self.array, self.columns, self.rows,
            self.column_stride, self.row_stride, self.batch_stride,
        )  # fmt: skip

    @property
    def layout(self) -> Layout:
        """The layout, without the address."""
        address = int(self.array.data.ptr) | 32
        return Layout(
            self.rows, self.columns, self.row_stride, self.column_stride, self.batch_stride,
            int(self.array.dtype.itemsize), address & -address,
        )  # fmt: skip


def batched(x: Any, batch_shape: tuple[int, ...]) -> Batched:
    """Return x ``(..., rows, columns)`` over ``batch_shape``; copied where no stride fits."""
    item = x.dtype.itemsize
    view = x if x.shape[:-2] == batch_shape else cupy.broadcast_to(x, batch_shape + x.shape[-2:])
    stride = one_stride(view.shape[:-2], view.strides[:-2])
    if stride is None:
        view = cupy.ascontiguousarray(view)
        stride = one_stride(view.shape[:-2], view.strides[:-2])
    rows, columns = view.shape[-2:]
    row, column = (step // item for step in view.strides[-2:])
    return Batched(view, rows, columns, row, column, (stride or 0) // item)


def one_stride(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """Return the one stride in bytes over all these axes in order; None where there is none."""
    axes = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n != 1]
    if not axes:
        return 0
    for (_, outer), (n, inner) in pairwise(axes):
        if outer != n * inner:
            return None
    return axes[-1][1]


def result_array(out: Any, shape: tuple[int, ...], dtype: str, inputs: list[Any]) -> Any:
    """Return the array that a kernel writes: ``out`` where it is `writable`, else a new one."""
    return out if out is not None and writable(out, inputs) else cupy.empty(shape, dtype)


def writable(out: Any, inputs: list[Any]) -> bool:
    """Return whether a kernel may write ``out`` while it reads ``inputs`` (arrays, or None).

    It may not where ``out`` overlaps an input or itself, or has no single stride over leading axes.
    """
    if one_stride(out.shape[:-2], out.strides[:-2]) is None:
        return False
    if any(s == 0 and n > 1 for n, s in zip(out.shape, out.strides, strict=True)):
        return False
    return not any(x is not None and may_overlap(out, x) for x in inputs)


def may_overlap(x: Any, y: Any) -> bool:
    """Return whether two arrays may have an element in common.

    Blocks of columns of one row-major matrix have none, although their bounds in memory cross.
    """
    return bool(cupy.may_share_memory(x, y)) and not _beside(x, y)


def _beside(x: Any, y: Any) -> bool:
    """Return whether x and y are matrices of other columns of the same rows in memory."""
    if x.ndim != 2 or y.ndim != 2 or x.strides[0] != y.strides[0] or x.strides[0] <= 0:
        return False
    pitch = x.strides[0]
    spans = []
    for one in (x, y):
        if one.shape[1] > 1 and one.strides[1] != one.dtype.itemsize:
            return False
        spans.append(one.shape[1] * one.dtype.itemsize)
    apart = (y.data.ptr - x.data.ptr) % pitch
    return bool(spans[0] <= apart and apart + spans[1] <= pitch)


def row_stride(x: Any, leading: int) -> int | None:
    """Return the elements from row to row of a GPU's array, whose ``leading`` axes count rows.

    None where columns are not contiguous or rows have no one stride.
    """
    item = x.dtype.itemsize
    if leading < x.ndim and x.shape[-1] > 1 and x.strides[-1] != item:
        return None
    stride = one_stride(x.shape[:leading], x.strides[:leading])
    return None if stride is None else stride // item


def clashes(x: Any, out: Any) -> bool:
    """Return whether a kernel that writes rows of out may change rows of x before it reads them.

    It cannot where out is x, or lies exactly as x does.
    """
    repeats = any(s == 0 and n > 1 for n, s in zip(out.shape, out.strides, strict=True))
    same = out.data.ptr == x.data.ptr and out.strides == x.strides and out.dtype == x.dtype
    return bool(repeats or (not same and cupy.may_share_memory(x, out)))
