"""Memory of calls that are captured into a graph of another library's, which owns it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cupy

from argand.runtime.driver.driver_bindings import driver_bindings


class _ThreadsGraph(threading.local):
    """The memory that a call has taken which a thread captures; None outside of such captures."""

    taken: list[Any] | None = None


CAPTURE = _ThreadsGraph()
"""Whether this thread is in a capture whose graph owns the memory."""


@contextmanager
def memory_of_graph(allocate: Callable[[int], Any]) -> Iterator[None]:
    """Have a captured call of this thread take all memory from ``allocate`` in this context.

    That is CuPy's memory pointer of a number of bytes, for one call within the graph's order.
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
    """Let this thread, in this context, take memory and load kernels while one captures.

    It may also drop graphs.
    """
    driver = driver_bindings()
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    _, before = driver.cuThreadExchangeStreamCaptureMode(mode)
    try:
        yield
    finally:
        driver.cuThreadExchangeStreamCaptureMode(before)


def destroy_with(owner: object, destroy: Callable[..., object], *arguments: object) -> None:
    """Have a call that destroys a graph made when its owner is gone, whoever captures then.

    A cache, or Python's collector, may drop a graph at any time: within a capture by torch too,
    which such a call ends with an error, of this thread and of others.
    """
    weakref.finalize(owner, _relaxed, destroy, *arguments).atexit = False


def _relaxed(call: Callable[..., object], *arguments: object) -> None:
    with relaxed_capture():
        call(*arguments)
