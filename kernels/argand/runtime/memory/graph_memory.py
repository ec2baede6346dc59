"""Memory of calls that another library captures into its graph; the graph owns that memory."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy

from argand.runtime.driver.driver_bindings import driver_bindings


class _ThreadsGraph(threading.local):
    """The memory that a captured call of a thread has taken; None outside of such captures."""

    taken: list[Any] | None = None


CAPTURE = _ThreadsGraph()
"""The state of this thread: whether it is in a capture whose graph owns the memory."""


@contextmanager
def memory_of_graph(allocate: Callable[[int], Any]) -> Iterator[None]:
    """Have a captured call of this thread take all memory from ``allocate`` in this context.

    ``allocate`` returns CuPy's memory pointer for a number of bytes, for one call in the graph's
    order.
    """
    before, CAPTURE.taken = CAPTURE.taken, []
    try:
        with cupy.cuda.using_allocator(allocate):
            yield
    finally:
        CAPTURE.taken = before


def memory_in_graph(nbytes: int) -> int:
    """Return the address of memory that the call keeps until its last launch."""
    assert CAPTURE.taken is not None
    CAPTURE.taken.append(cupy.cuda.alloc(nbytes))
    return int(CAPTURE.taken[-1].ptr)


@contextmanager
def relaxed_capture() -> Iterator[None]:
    """Let this thread take memory, load kernels and drop graphs while a thread captures.

    The context exchanges the thread's mode of capture for the relaxed one.
    """
    driver = driver_bindings()
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    _, before = driver.cuThreadExchangeStreamCaptureMode(mode)
    try:
        yield
    finally:
        driver.cuThreadExchangeStreamCaptureMode(before)


def destroy_with(owner: object, destroy: Callable[..., object], *arguments: object) -> None:
    """Have a graph destroyed by a call once its owner is gone, whoever captures then.

    A cache, or Python's collector, may drop a graph at any time: within a capture by torch too,
    which such a call would end with an error in all threads.
    """
    weakref.finalize(owner, _relaxed, destroy, *arguments).atexit = False


def _relaxed(call: Callable[..., object], *arguments: object) -> None:
    with relaxed_capture():
        call(*arguments)
