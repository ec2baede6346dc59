"""Calls that XLA may capture into its CUDA graphs, so that it replays them without Python.

A graph holds addresses. So a call is captured where its launches read and write its arrays alone,
which a trial on arrays of the same forms shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy

from argand.runtime.driver.current_stream import OnStream
from argand.runtime.memory.graph_memory import memory_of_graph, relaxed_capture

MAX_BYTES = 1 << 24
"""Most bytes of the arrays of a call that is tried: a longer one hides the host's time."""
_kept: list[Any] = []
"""Memory of calls that were captured all the same, such as at addresses of another alignment."""


def takes_no_memory(call: Callable[..., None], forms: list[tuple[tuple[int, ...], Any]]) -> bool:
    """Return whether a call, captured on arrays of these shapes and types, takes no memory.

    ``call`` writes the last of the arrays. It is made once before, which compiles its kernels.
    """
    if sum(math.prod(shape) * dtype.itemsize for shape, dtype in forms) > MAX_BYTES:
        return False
    taken = 0

    def allocate(nbytes: int) -> Any:
        nonlocal taken
        taken += nbytes
        return memory(nbytes)

    with OnStream(cupy.cuda.Stream(non_blocking=True)) as stream:
        arrays = [cupy.zeros(shape, dtype) for shape, dtype in forms]
        call(*arrays)
        memory = cupy.cuda.get_allocator()
        try:
            with relaxed_capture():
                stream.begin_capture()
                try:
                    with memory_of_graph(allocate):
                        call(*arrays)
                finally:
                    stream.end_capture()
        except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError):
            return False  # it waits for the device
        finally:
            stream.synchronize()
    return not taken


@contextmanager
def captured() -> Iterator[None]:
    """Mark calls within this context as captured by another's program, which keeps their memory."""
    memory = cupy.cuda.get_allocator()

    def allocate(nbytes: int) -> Any:
        _kept.append(memory(nbytes))
        return _kept[-1]

    with relaxed_capture(), memory_of_graph(allocate):
        yield
