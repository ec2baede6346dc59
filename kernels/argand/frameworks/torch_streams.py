"""Contexts in which CuPy works on torch's stream and device and, in a capture, in its memory."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cache
from typing import Any

import torch

from argand.device import require_cupy
from argand.frameworks.streams import cupy_stream, let_wait
from argand.frameworks.torch_internals import INTERNALS

_NOTHING = nullcontext()


def on_stream_of(device: Any) -> AbstractContextManager[Any]:
    """Return a context in which CuPy works as torch does: on its stream, device and memory.

    Where CuPy's current stream and device are torch's, it is empty, and CuPy's own pool serves as
    workspace, which belongs to the stream. In a capture memory is torch's, so that the graph owns
    it.
    """
    if device.type == "cpu":
        return _NOTHING
    cupy = require_cupy()
    from argand.runtime.driver.current_stream import OnStream

    address = INTERNALS.raw_stream(device.index)
    capturing = torch.cuda.is_current_stream_capturing()
    current = cupy.cuda.get_current_stream().ptr == address
    if current and not capturing and cupy.cuda.runtime.getDevice() == device.index:
        return _NOTHING
    stack = ExitStack()
    stack.enter_context(cupy.cuda.Device(device.index))
    stack.enter_context(OnStream(cupy_stream(address)))
    if capturing:
        from argand.runtime.memory.graph_memory import memory_of_graph

        stack.enter_context(memory_of_graph(_torch_memory()))
    return stack


@cache
def _torch_memory() -> Any:
    """Return an allocator of CuPy's that takes memory from torch's."""
    import cupy

    def allocate(size: int, device: int) -> int:
        stream = cupy.cuda.get_current_stream().ptr
        return int(torch.cuda.caching_allocator_alloc(size, device, stream)) if size else 0

    def free(address: int, _device: int) -> None:
        if address:
            torch.cuda.caching_allocator_delete(address)

    return cupy.cuda.PythonFunctionAllocator(allocate, free).malloc


def let_cupy_wait(device: Any) -> None:
    """Let CuPy's own stream, on which calls on pairs and packed operands run, wait for torch's.

    In a capture it does nothing: no stream outside may wait for one.
    """
    import cupy

    if torch.cuda.is_current_stream_capturing():
        return
    with cupy.cuda.Device(device.index):
        let_wait(cupy.cuda.get_current_stream(), INTERNALS.raw_stream(device.index))
