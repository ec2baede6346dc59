"""Calls of a library as CUDA graphs, captured at addresses that come again.

A library names no kernels, so a graph of its call is captured, for that call's addresses alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import RLock, get_ident
from typing import Any

import cupy

from argand.runtime.driver.current_stream import OnStream
from argand.runtime.memory.captured_memory import is_captured
from argand.runtime.memory.graph_memory import destroy_with

_MAX_SEEN = 8
"""Addresses that are kept until they come again; then all are dropped, graphs too."""
_WORTH = 16
"""Launches of a graph that are worth its capture, which takes some ten calls of the library."""
ATTEMPTS = 3
"""Captures of a call that may fail until it counts as one that cannot be captured: another thread
that waits for the whole GPU ends a capture too."""
CAPTURING = RLock()
"""Held while a call of ours is captured, and while a library waits for the GPU: CUDA would end the
capture, and the library may fail. It is the first of all locks that are held together."""
_runtime = cupy.cuda.runtime
Arguments = tuple[Any, ...]
"""A call's addresses, and whatever else decides it."""


class _Graph:
    """A graph of CuPy's, which is destroyed when this object is gone."""

    def __init__(self, graph: Any) -> None:
        #: The executable graph, for CUDA's runtime.
        self.handle = graph.graphExec
        destroy_with(self, [graph].clear)


class CapturedCalls:
    """Graphs of a library's call, for one stream and one thread.

    ``queue``, given its arguments, queues the call on CuPy's current stream, and ``before`` makes
    what a capture cannot.
    """

    def __init__(
        self, queue: Callable[..., None], before: Callable[[], object] | None = None
    ) -> None:
        self._queue, self._before = queue, before
        self._graphs: dict[Arguments, Any] = {}  # None where the addresses came once
        self._launches = 0
        self._capturable = True
        self._failed = 0

    def launch(self, call: Arguments, stream: int) -> bool:
        """Launch the call's graph on a stream; return False, with nothing done, without one.

        Addresses have one from their second call on; the first also loads what no capture may.
        A call that the library or CUDA does not let be captured in some attempts has none, nor has
        one for whose workspace there is no memory.
        """
        if self.again(call, stream):
            return True
        if not self._capturable:
            return False
        graphs = self._graphs
        if call not in graphs:
            if len(graphs) >= _MAX_SEEN:
                self._forget()
            graphs[call] = None
            return False
        if is_captured(stream):
            return False
        try:
            graphs[call] = self._captured(call)
        except (RuntimeError, MemoryError):
            self._failed += 1
            self._capturable = self._failed < ATTEMPTS
            return False
        return self.again(call, stream)

    def again(self, call: Arguments, stream: int) -> bool:
        """Launch a graph that is there on a stream; return False, with nothing done, without one.

        The stream need not be CuPy's current one: nothing is allocated.
        """
        graph = self._graphs.get(call)
        if graph is None or (stream and is_captured(stream)):
            return False
        _runtime.graphLaunch(graph.handle, stream)
        self._launches += 1
        return True

    def _forget(self) -> None:
        """Drop all graphs, and make no more of them where they were not worth their capture."""
        made = sum(graph is not None for graph in self._graphs.values())
        self._capturable = self._launches >= _WORTH * made
        self._launches = 0
        self._graphs.clear()

    def _captured(self, call: Arguments) -> _Graph:
        if self._before is not None:
            self._before()
        stream = _capture_stream(cupy.cuda.Device().id, get_ident())
        with CAPTURING, OnStream(stream):
            # Relaxed: what other threads do meanwhile is none of this capture's.
            stream.begin_capture(_runtime.streamCaptureModeRelaxed)
            try:
                self._queue(*call)
            finally:
                graph = stream.end_capture()
        return _Graph(graph)


@lru_cache(maxsize=64)
def _capture_stream(device: int, thread: int) -> Any:
    """Return a stream that only captures; the legacy stream cannot."""
    return cupy.cuda.Stream(non_blocking=True)
