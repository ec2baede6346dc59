"""Memory that kernels find zero and leave zero: counters that no call has to clear."""

from __future__ import annotations

from threading import get_ident
from typing import Any

import cupy

_LEAST_BYTES = 1 << 16
PER_THREAD = 2
"""CUDA's handle of the default stream that each thread has for itself."""
_kept: dict[tuple[int, int, int], Any] = {}


def zeroed(nbytes: int, stream: int | None = None, device: int | None = None) -> int:
    """The address of so many bytes that are zero for the next kernel of the current stream.

    ``stream`` is its handle and ``device`` the number of the current device, where they are known.

    It belongs to the stream (and its device) and is kept: kernels of one stream run one after the
    other, and each must leave zeros behind.
    """
    if stream is None:
        stream = cupy.cuda.get_current_stream().ptr
    thread = get_ident() if stream == PER_THREAD else 0
    key = (cupy.cuda.runtime.getDevice() if device is None else device, stream, thread)
    found = _kept.get(key)
    if found is None or found.nbytes < nbytes:
        # What a larger one replaces is freed in the stream's order.
        found = _kept[key] = cupy.zeros(max(nbytes, _LEAST_BYTES), cupy.uint8)
    return int(found.data.ptr)
