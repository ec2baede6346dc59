"""Memory that kernels find zero and leave zero: counters that no call has to clear."""

from __future__ import annotations

from typing import Any

import cupy

_LEAST_BYTES = 1 << 16
_kept: dict[tuple[int, int], Any] = {}


def zeroed(nbytes: int) -> int:
    """The address of so many bytes that are zero for the next kernel of the current stream.

    It belongs to the stream (and its device) and is kept: kernels of one stream run one after the
    other, and each must leave zeros behind.
    """
    key = (cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream().ptr)
    found = _kept.get(key)
    if found is None or found.nbytes < nbytes:
        # What a larger one replaces is freed in the stream's order.
        found = _kept[key] = cupy.zeros(max(nbytes, _LEAST_BYTES), cupy.uint8)
    return int(found.data.ptr)
