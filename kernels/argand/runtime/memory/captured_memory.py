"""Memory of calls that a program captures into a CUDA graph: the graph's own, as long as it lives.

Graphs are replayed in any order, at once, and beside other calls on the stream of their capture. So
they share neither counters nor workspace with each other or with the stream. CUDA says when a graph
is gone: it calls a C function, on a thread that must not call CUDA. That function is sem_post, so
no Python runs there; the next capture looks at the semaphores.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, lru_cache
from threading import Lock
from typing import Any

import cupy

from argand.runtime.driver.current_stream import OnStream
from argand.runtime.driver.driver_bindings import driver_bindings
from argand.runtime.memory.graph_memory import relaxed_capture

_BYTES_OF_SEMAPHORE = 64
"""Bytes for a sem_t, which has 32 with glibc and with musl."""
_MIN_COUNTERS = 1 << 12
"""Fewest bytes of counters, so that the calls of a capture share them."""
_runtime = cupy.cuda.runtime
_is_capturing = _runtime.streamIsCapturing
_captures: dict[int, Capture] = {}
"""Captures whose graphs live, by CUDA's number of them."""
_lock = Lock()


class Capture:
    """The memory of one capture, from which calls take blocks in the order of their streams.

    Raises CUDADriverError where the driver does not say when the graph is gone.
    """

    def __init__(self, graph: Any) -> None:
        libc, driver = _libc(), driver_bindings()
        self._gone = libc.calloc(1, _BYTES_OF_SEMAPHORE)
        libc.sem_init(self._gone, 0, 0)
        post = driver.CUhostFn(ctypes.cast(libc.sem_post, ctypes.c_void_p).value)
        flags = driver.CUuserObject_flags.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
        error, user_object = driver.cuUserObjectCreate(self._gone, post, 1, int(flags))
        if not error:
            move = driver.CUuserObjectRetain_flags.CU_GRAPH_USER_OBJECT_MOVE
            (error,) = driver.cuGraphRetainUserObject(graph, user_object, 1, int(move))
        if error:
            raise cupy.cuda.driver.CUDADriverError(int(error))
        self._held: list[Any] = []
        self._objects: dict[Any, Any] = {}
        self._counters: dict[int, tuple[int, int]] = {}  # by stream: address, bytes
        self._free: dict[int, list[tuple[int, int]]] = {}  # the same of blocks that no call has
        self._sizes: dict[int, int] = {}

    def is_gone(self) -> bool:
        """Return whether the graph is gone, with all that was instantiated of it.

        After that the object is of no use.
        """
        libc = _libc()
        if libc.sem_trywait(self._gone):
            return False
        libc.free(self._gone)
        return True

    def counters(self, nbytes: int, stream: int) -> int:
        """Return the address of bytes that each replay clears, shared by the calls of a stream."""
        address, size = self._counters.get(stream, (0, 0))
        if size < nbytes:
            size = max(nbytes, _MIN_COUNTERS)
            address = self._new(size)
            _runtime.memsetAsync(address, 0, size, stream)
            self._counters[stream] = address, size
        return address

    def memory(self, nbytes: int, stream: int) -> Any:
        """Return memory (CuPy's pointer) of a call, which goes to later calls of the stream."""
        free = self._free.setdefault(stream, [])

        def take(size: int, _device: int) -> int:
            fitting = [block for block in free if block[1] >= size]
            if fitting:
                block = min(fitting, key=lambda block: block[1])
                free.remove(block)
                return block[0]
            address = self._new(size)
            self._sizes[address] = size
            return address

        def give(address: int, _device: int) -> None:
            free.append((address, self._sizes[address]))

        return cupy.cuda.PythonFunctionAllocator(take, give).malloc(nbytes)

    def kept(self, owner: Any, make: Callable[[], Any]) -> Any:
        """Return the object that this capture keeps for an owner, both as long as the graph."""
        if owner not in self._objects:
            self._objects[owner] = make()
        return self._objects[owner]

    def keep(self, owner: Any) -> None:
        """Keep an object, which is hashable, as long as the graph lives. None keeps nothing."""
        if owner is not None:
            self.kept(owner, lambda: owner)

    def _new(self, nbytes: int) -> int:
        self._held.append(memory_beside(nbytes))
        return int(self._held[-1].ptr)


def memory_beside(nbytes: int) -> Any:
    """Return memory (CuPy's pointer) that no stream of the program has used.

    What a stream has given back is free in that stream's order, which a graph does not follow. It
    comes from CuPy's own pool, not from the program's allocator: that may itself be captured.
    """
    with relaxed_capture(), OnStream(stream_beside(cupy.cuda.Device().id)):
        return cupy.get_default_memory_pool().malloc(nbytes)


@lru_cache(maxsize=64)
def stream_beside(device: int) -> Any:
    """Return a stream of the current device, given its index, that is never captured."""
    return cupy.cuda.Stream(non_blocking=True)


def is_captured(stream: int) -> bool:
    """Return whether a stream of the current device is captured."""
    # The legacy stream, which is 0, cannot be captured.
    return bool(stream and _is_capturing(stream))


def capture_of(stream: int) -> Capture | None:
    """Return the capture that a stream of the current device is in; None where it is in none.

    Raises CUDADriverError where the driver refuses to tell.
    """
    if not is_captured(stream):
        return None
    driver = driver_bindings()
    # CUDA 12 has several functions; the last allows for the kinds of edges.
    info = getattr(driver, "cuStreamGetCaptureInfo_v3", driver.cuStreamGetCaptureInfo)
    error, _, number, graph, *_ = info(stream)
    if error:
        raise cupy.cuda.driver.CUDADriverError(int(error))
    with _lock:
        found = _captures.get(int(number))
        if found is None:
            for other in [other for other, x in _captures.items() if x.is_gone()]:
                del _captures[other]
            found = _captures[int(number)] = Capture(graph)
        return found


def keep_in_graph(owner: Any, stream: int | None = None) -> None:
    """Have the graph keep an object where a stream, CuPy's current one by default, is captured."""
    capture = capture_of(cupy.cuda.get_current_stream().ptr if stream is None else stream)
    if capture is not None:
        capture.keep(owner)


@cache
def _libc() -> Any:
    """Return the C library with the types of the functions that are used here."""
    found = ctypes.CDLL(None)
    found.calloc.restype = ctypes.c_void_p
    found.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    for name in ("free", "sem_trywait"):
        getattr(found, name).argtypes = [ctypes.c_void_p]
    found.sem_init.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint]
    return found
