"""Workspace of calls: counters that kernels leave zero, and memory that one call needs.

Counters are found zero, so that no call has to clear them. The memory of a call is freed after its
launches and reused in the stream's order; that of a plan stays, so that a graph which captured the
plan can be replayed as long as the plan lives. In a capture all of it is the graph's own: graphs
may run beside each other, in any order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cupy

from argand.frameworks.graph_memory import CAPTURE, memory_in_graph
from argand.runtime.captured_memory import capture_of, keep_in_graph

_MIN_BYTES = 1 << 16
_NOTHING = (0, 0, None)
PER_THREAD = 2
"""CUDA's handle of the default stream that each thread has for itself."""
_kept: dict[tuple[int, int, int], tuple[int, int, Any]] = {}
"""Address, bytes and array, by device, stream and thread."""
_outgrown: list[Any] = []
"""Smaller arrays, whose addresses captured graphs may hold: less than the ones that are kept."""


def stream_key(stream: int) -> tuple[int, int]:
    """Return a stream's handle, and the thread where each has a stream of that handle, else 0."""
    return stream, threading.get_ident() if stream == PER_THREAD else 0


def zeroed_workspace(
    nbytes: int, stream: int | None = None, device: int | None = None, owner: Any = None
) -> int:
    """Return the address of ``nbytes`` that are zero for the next kernel of the current stream.

    ``stream`` is the stream's handle and ``device`` the index of the current device, where the
    caller knows them. In a capture the graph keeps the ``owner`` of tables that the kernel reads.
    The memory belongs to the stream and is kept: kernels of one stream run one after the other, and
    each must leave zeros behind.
    """
    if stream is None:
        stream = cupy.cuda.get_current_stream().ptr
    if CAPTURE.taken is not None:
        if owner is not None:
            keep_in_graph(owner, stream)
        address = memory_in_graph(nbytes)
        cupy.cuda.runtime.memsetAsync(address, 0, nbytes, stream)  # at each replay
        return address
    capture = capture_of(stream)
    if capture is not None:
        capture.keep(owner)
        return capture.counters(nbytes, stream)
    key = (cupy.cuda.runtime.getDevice() if device is None else device, *stream_key(stream))
    address, size, smaller = _kept.get(key, _NOTHING)
    if size < nbytes:
        if smaller is not None:
            _outgrown.append(smaller)
        found = cupy.zeros(max(nbytes, 2 * size, _MIN_BYTES), cupy.uint8)
        address = int(found.data.ptr)
        _kept[key] = address, int(found.nbytes), found
    return address


_libraries: dict[tuple[int, int, int, int], Any] = {}
"""Memory by device, stream, thread and bytes."""


def library_workspace(nbytes: int, stream: int, device: int) -> int:
    """Return the address of ``nbytes`` for a library's kernels on a stream of the current device.

    They hold anything. The memory is the stream's and is kept: graphs hold its address.
    """
    if CAPTURE.taken is not None:
        return memory_in_graph(nbytes)
    capture = capture_of(stream)
    if capture is not None:
        return int(capture.memory(nbytes, stream).ptr)  # later calls of the stream get it too
    key = (device, *stream_key(stream), nbytes)
    if key not in _libraries:
        _libraries[key] = cupy.cuda.alloc(nbytes)
    return int(_libraries[key].ptr)


class _ThreadsPlan(threading.local):
    """The memory of the plan that a thread is calling."""

    taking: _Taking | None = None


_current = _ThreadsPlan()


def call_memory(nbytes: int, owner: Any = None) -> Any:
    """Return memory (CuPy's pointer) for the launches of one call on the current stream.

    The caller holds it until the last launch, and another call may have it then. In a capture the
    graph keeps the ``owner`` of tables that the launches read.
    """
    stream = cupy.cuda.get_current_stream().ptr
    if CAPTURE.taken is not None:
        if owner is not None:
            keep_in_graph(owner, stream)
        return cupy.cuda.alloc(nbytes)  # the graph's, of plans too
    capture = capture_of(stream)
    if capture is not None:
        capture.keep(owner)
        return capture.memory(nbytes, stream)
    taking = _current.taking
    return cupy.cuda.alloc(nbytes) if taking is None else taking.memory(nbytes)


class PlanMemory:
    """The memory of one plan's calls, by stream: calls of one stream run one after another."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[int, int], list[Any]] = {}  # by `stream_key`

    @property
    def nbytes(self) -> int:
        """Bytes of a call; 0 where calls take none."""
        return max((sum(x.mem.size for x in of) for of in self._blocks.values()), default=0)

    @contextmanager
    def use(self, stream: int) -> Iterator[None]:
        """Let calls of this thread on this stream take their memory from here, in this context."""
        before = _current.taking
        _current.taking = _Taking(self._blocks.setdefault(stream_key(stream), []))
        try:
            yield
        finally:
            _current.taking = before


class _Taking:
    """One call that takes a plan's blocks in order, which is the same at each call."""

    def __init__(self, blocks: list[Any]) -> None:
        self._blocks, self._next = blocks, 0

    def memory(self, nbytes: int) -> Any:
        """Return the next block."""
        blocks, number = self._blocks, self._next
        self._next = number + 1
        if number == len(blocks):
            blocks.append(cupy.cuda.alloc(nbytes))
        if blocks[number].mem.size < nbytes:
            blocks[number] = cupy.cuda.alloc(nbytes)
        return blocks[number]
