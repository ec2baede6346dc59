"""Streams of other libraries as CuPy's, made once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=256)
def cupy_stream(address: int) -> Any:
    """Return the stream at an address, which its library keeps; libraries have few and pool them.

    To make the object takes longer than to launch a kernel.
    """
    import cupy

    return cupy.cuda.Stream.from_external(_Handle(address))


def let_wait(stream: Any, producer: int) -> None:
    """Let a stream of CuPy's wait for what is queued on another, given by its address, 1 or 2."""
    import cupy

    if stream.ptr == producer:
        return
    event = cupy.cuda.Event(disable_timing=True)
    cupy.cuda.runtime.eventRecord(event.ptr, producer)
    stream.wait_event(event)


class _Handle:
    """A stream by CUDA's stream protocol: its version and the address."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._address
