"""Constant tables on a device, in memory that kernels of every stream may read.

A copy to a device is in the order of one stream alone: behind a busy one it comes late, and kernels
of another stream, to which the same table was handed, would read memory before it is written.
"""

from __future__ import annotations

from typing import Any

import cupy

from argand.runtime.driver.current_stream import OnStream
from argand.runtime.memory.captured_memory import (
    capture_of,
    is_captured,
    memory_beside,
    stream_beside,
)
from argand.runtime.memory.graph_memory import relaxed_capture

_current_stream = cupy.cuda.get_current_stream


def device_table(x: Any) -> Any:
    """Return x, an array of NumPy's, on the current device; the host waits until it is there.

    In a capture it is copied at once, beside the capture.
    """
    if is_captured(_current_stream().ptr):
        return _copied_beside(x)
    return cupy.asarray(x, blocking=True)


def stream_table(x: Any) -> Any:
    """Return x, an array of NumPy's, on the current device, copied in the order of its stream.

    In a capture it is copied at once, beside the capture, whose graph keeps it as long as it lives.
    """
    capture = capture_of(_current_stream().ptr)
    if capture is None:
        return cupy.asarray(x)
    return capture.kept(object(), lambda: _copied_beside(x))


def wait_for_tables() -> None:
    """Let the host wait until every `stream_table` of the current stream is there."""
    stream = _current_stream()
    if not is_captured(stream.ptr):  # where they are there already
        stream.synchronize()


def _copied_beside(x: Any) -> Any:
    """Return x on the current device, by a stream that is not captured, in CuPy's own memory."""
    stream = OnStream(stream_beside(cupy.cuda.Device().id))
    with relaxed_capture(), stream, cupy.cuda.using_allocator(memory_beside):
        return cupy.asarray(x, blocking=True)
