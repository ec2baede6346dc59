"""A plan on a GPU whose calls stage their array: rows along the planned axis, in the plan's memory.

Kernels read rows whose elements lie one after another. An array along another axis, or of another
length, is copied into such rows, and the result back.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import cupy

from argand.checks import check_out, refuse_misaligned
from argand.runtime.calls.call_cache import CallCache
from argand.runtime.calls.device_call_plan import DeviceCallPlan
from argand.runtime.memory.captured_memory import capture_of, memory_beside
from argand.runtime.memory.workspace import stream_key

_ndarray = cupy.ndarray
_current_stream = cupy.cuda.get_current_stream


class _Memory(NamedTuple):
    """Rows and results of one stream's calls, and the lock of the thread that launches one."""

    rows: Any
    result: Any
    lock: Lock


class StagedCallPlan:
    """A call along any axis, as a `DeviceCallPlan` of its rows and the copies before and behind it.

    Args:
        cache: the cache of the operation.
        call: the operation along the last axis.
        x: an array of the planned type and shape; strides are any.
        axis: the axis that becomes the last one.
        length: the length of the rows, which x fills or is cut to.
    """

    def __init__(
        self, cache: CallCache, call: Callable[..., Any], x: Any, axis: int, length: int
    ) -> None:
        refuse_misaligned("x", x)  # rows of its type are planned, which lie where they should
        self._axis, self._form = axis, (x.dtype, x.shape)
        moved = cupy.moveaxis(x, axis, -1)
        self._shape = (*moved.shape[:-1], length)
        self._read = slice(min(length, moved.shape[-1]))
        rows = self._rows_of(x)
        self._plan = DeviceCallPlan(cache, call, (rows,))
        #: The GPU, and what runs there.
        self.device, self.chosen = self._plan.device, self._plan.chosen
        #: The operation may reduce the axis; the result then lacks it.
        result = self._plan.queue((rows, None))
        self._keeps_axis = result.ndim == x.ndim
        self._result_of_rows = result.shape, result.dtype
        self._streams = {stream_key(_current_stream().ptr): _Memory(rows, result, Lock())}
        self._result = tuple(self._turned_back(result).shape), str(result.dtype)

    def _rows_of(self, x: Any) -> Any:
        return cupy.zeros(self._shape, x.dtype)

    def _turned_back(self, found: Any) -> Any:
        return cupy.moveaxis(found, -1, self._axis) if self._keeps_axis else found

    def queue(self, every: tuple[Any, ...]) -> Any:
        """Queue the call for x and ``out``, or None, and return the result.

        It returns None, and does nothing, where they are not as planned.
        """
        if self.mismatch(("x",), every) is not None:
            return None
        x, out = every
        stream = _current_stream().ptr
        capture = capture_of(stream)
        if capture is not None:
            memory = capture.kept((self, stream), lambda: self._memory_beside(x))
        else:
            key = stream_key(stream)
            memory = self._streams.get(key)
            if memory is None:
                memory = self._streams[key] = self._memory_of(x)
        with memory.lock:
            memory.rows[..., self._read] = cupy.moveaxis(x, self._axis, -1)[..., self._read]
            if out is None:
                return self._turned_back(self._plan.queue((memory.rows, None)))
            out[...] = self._turned_back(self._plan.queue((memory.rows, memory.result)))
        return out

    def _memory_beside(self, x: Any) -> _Memory:
        with cupy.cuda.using_allocator(memory_beside):
            return self._memory_of(x)

    def _memory_of(self, x: Any) -> _Memory:
        return _Memory(self._rows_of(x), cupy.ndarray(*self._result_of_rows), Lock())

    def mismatch(self, names: tuple[str, ...], every: tuple[Any, ...]) -> str | None:
        """Return why a call is not this plan's; None where it is."""
        x, out = every
        index = self.device.index
        for name, array in zip((*names, "out"), every, strict=True):
            if array is not None and (type(array) is not _ndarray or array.device.id != index):
                return f"{name} must be on {self.device.name}, got {type(array).__name__}"
        if (x.dtype, x.shape) != self._form:
            return f"{names[0]} must be {self._form} as planned, got {(x.dtype, x.shape)}"
        try:
            refuse_misaligned(names[0], x)
            check_out(out, *self._result)
        except ValueError as error:
            return str(error)
        return None

    @property
    def nbytes(self) -> int:
        """Bytes of a call beside its arrays."""
        memory = next(iter(self._streams.values()))
        return int(self._plan.nbytes + memory.rows.nbytes + memory.result.nbytes)

    def tuned(self) -> dict[str, Any] | None:
        """Return the tuned plan that the call took; None where it has none."""
        return self._plan.tuned()
