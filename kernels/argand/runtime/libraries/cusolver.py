"""cuSOLVER by a handle of each stream, which is kept.

CuPy makes a handle a thread, and destroys it when that ends: the library waits for the GPU then,
which ends every capture of a stream there, also by other threads. A handle has memory for its
kernels, so that streams share none.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple

import cupy
from cupy_backends.cuda.libs import cusolver

from argand.runtime.memory.graph_memory import relaxed_capture
from argand.runtime.memory.workspace import stream_key


class CusolverHandle(NamedTuple):
    """A handle for calls on one stream, and the lock of the thread that queues them."""

    handle: int
    lock: Any


_handles: dict[tuple[int, int, int], CusolverHandle] = {}
"""Handles by device, stream and thread."""
_making = Lock()


def cusolver_handle() -> CusolverHandle:
    """Return the handle of the current device and stream."""
    key = (cupy.cuda.runtime.getDevice(), *stream_key(cupy.cuda.get_current_stream().ptr))
    found = _handles.get(key)
    if found is None:
        with _making, relaxed_capture():
            found = _handles.get(key)
            if found is None:
                found = _handles[key] = CusolverHandle(cusolver.create(), Lock())
    return found
