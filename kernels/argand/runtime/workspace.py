"""Workspace that kernels find zero and leave zero, so that no call has to clear its counters."""

from __future__ import annotations

from threading import get_ident
from typing import Any

import cupy

_MIN_BYTES = 1 << 16
_NOTHING = (0, 0, None)
PER_THREAD = 2
"""CUDA's handle of the default stream that each thread has for itself."""
_kept: dict[tuple[int, int, int], tuple[int, int, Any]] = {}
"""Address, bytes and array, by device, stream and thread."""


def zeroed_workspace(nbytes: int, stream: int | None = None, device: int | None = None) -> int:
    """Return the address of ``nbytes`` that are zero for the next kernel of the current stream.

    ``stream`` is the stream's handle and ``device`` the index of the current device, where the
    caller knows them. The memory belongs to the stream and is kept: kernels of one stream run one
    after the other, and each must leave zeros behind.
    """
    if stream is None:
        stream = cupy.cuda.get_current_stream().ptr
    thread = get_ident() if stream == PER_THREAD else 0
    key = (cupy.cuda.runtime.getDevice() if device is None else device, stream, thread)
    address, size, _ = _kept.get(key, _NOTHING)
    if size < nbytes:
        # CuPy frees the smaller memory in the stream's order.
        found = cupy.zeros(max(nbytes, _MIN_BYTES), cupy.uint8)
        address = int(found.data.ptr)
        _kept[key] = address, int(found.nbytes), found
    return address
