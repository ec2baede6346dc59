"""Workspace of calls: counters that kernels leave zero, and memory that one call needs.

Counters are found zero, so that no call has to clear them. The memory of a call is freed after its
launches and reused in the stream's order; that of a plan stays, so that a graph which captured the
plan can be replayed as long as the plan lives. In a capture all of it is the graph's own: graphs
may run beside each other, in any order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

import cupy

from argand.runtime.memory.captured_memory import capture_of, keep_in_graph
from argand.runtime.memory.graph_memory import CAPTURE, memory_in_graph

_MIN_BYTES = 1 << 16
_NOTHING = (0, 0)
PER_THREAD = 2
"""CUDA's handle of the default stream that each thread has for itself."""
_kept: dict[tuple[int, int, int], tuple[int, int]] = {}
"""Address and bytes, by device, stream and thread."""
_arrays: list[Any] = []
"""All arrays that were ever kept. Graphs may hold the addresses of outgrown ones, which are smaller
together than the last one. Each of several threads that begin to share a stream may have made
one."""


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
    address, size = _kept.get(key, _NOTHING)
    if size < nbytes:
        found = cupy.zeros(max(nbytes, 2 * size, _MIN_BYTES), cupy.uint8)
        _arrays.append(found)
        address = int(found.data.ptr)
        _kept[key] = address, int(found.nbytes)
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
    found = _libraries.get(key)
    if found is None:  # another thread of the stream may have come first: then all take its memory
        found = _libraries.setdefault(key, cupy.cuda.alloc(nbytes))
    return int(found.ptr)


def library_memory(nbytes: int, stream: int, device: int) -> Any:
    """Return memory (CuPy's pointer) of a library's kernels for one call on a stream.

    It is `library_workspace` where the stream has that. Otherwise, unlike that, it is given back:
    the caller holds it until the last launch.
    """
    if CAPTURE.taken is not None:
        return cupy.cuda.alloc(nbytes)  # the graph's
    capture = capture_of(stream)
    if capture is not None:
        return capture.memory(nbytes, stream)
    found = _libraries.get((device, *stream_key(stream), nbytes))
    return cupy.cuda.alloc(nbytes) if found is None else found


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


@contextmanager
def parts_of_call() -> Iterator[Callable[[], None]]:
    """Yield what a call makes before each of its parts, so that all use the same memory.

    Parts run one after another on one stream: outside of plans each gives its memory back.
    """
    taking = _current.taking
    if taking is None:
        yield lambda: None
        return
    with taking.again() as again:
        yield again


class _StreamsMemory(NamedTuple):
    """The blocks of a plan's calls on one stream, and the lock of the thread that launches one.

    A block is CuPy's pointer, and the bytes that were asked for.
    """

    blocks: list[tuple[Any, int]]
    lock: Lock


class PlanMemory:
    """The memory of one plan's calls, by stream: calls of one stream run one after another.

    Threads may share a stream, so each holds a lock until the last launch of its call: no kernel of
    another call comes between those that share a block.
    """

    def __init__(self) -> None:
        self._streams: dict[tuple[int, int], _StreamsMemory] = {}  # by `stream_key`

    @property
    def nbytes(self) -> int:
        """Bytes of a call; 0 where calls take none."""
        every = [one.blocks for one in self._streams.values()]
        return max((sum(nbytes for _, nbytes in blocks) for blocks in every), default=0)

    def run(self, call: Callable[..., Any], arguments: tuple[Any, ...], stream: int) -> Any:
        """Return a call's result on a stream, the current one; it takes its memory from here."""
        key = stream_key(stream)
        found = self._streams.get(key)
        if found is None:
            found = self._streams.setdefault(key, _StreamsMemory([], Lock()))
        with found.lock:
            before = _current.taking
            _current.taking = _Taking(found.blocks)
            try:
                return call(*arguments)
            finally:
                _current.taking = before


class _Taking:
    """One call that takes a plan's blocks in order, which is the same at each call."""

    def __init__(self, blocks: list[tuple[Any, int]]) -> None:
        self._blocks, self._next = blocks, 0

    @contextmanager
    def again(self) -> Iterator[Callable[[], None]]:
        """Yield what has the next block be the same each time; then come those that no part had."""
        first = last = self._next

        def begin() -> None:
            nonlocal last
            last = max(last, self._next)
            self._next = first

        yield begin
        self._next = max(last, self._next)

    def memory(self, nbytes: int) -> Any:
        """Return the next block."""
        blocks, number = self._blocks, self._next
        self._next = number + 1
        if number == len(blocks):
            blocks.append((cupy.cuda.alloc(nbytes), nbytes))
        elif blocks[number][1] < nbytes:
            blocks[number] = cupy.cuda.alloc(nbytes), nbytes
        return blocks[number][0]
