"""Kernels that follow each other, started together: a CUDA graph costs the host half of one launch.

A graph is made for a stream when a form of call comes to it for the third time. Until then, while
the stream is being captured, and where there are too many graphs, kernels are started one by one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import cupy
from cuda.bindings import driver

from argand.cuda_kernel import BoundKernel, Filling, need_context
from argand.cuda_workspace import PER_THREAD

_CALLS_BEFORE = 2
"""Calls on a stream that are not worth a graph, which takes some tens of microseconds to make."""
_NEVER = 1 << 60
_MOST_STREAMS = 8
"""For which one form of call keeps graphs."""
_MOST_COUNTED = 64
"""Streams on which the calls of a form are counted, after which they are counted anew."""
_MOST_GRAPHS = 512
"""In this process; the driver keeps memory for each."""
_alive: weakref.WeakSet[LaunchGraph] = weakref.WeakSet()
_runtime = cupy.cuda.runtime


class LaunchGraph:
    """Kernels one after another as one launch. Raises CUDADriverError where the driver refuses."""

    def __init__(self, kernels: Sequence[BoundKernel]) -> None:
        # Another thread may be capturing a stream, with which this has nothing to do.
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        mode = _made(driver.cuThreadExchangeStreamCaptureMode(relaxed))
        try:
            self._make(kernels)
        finally:
            _made(driver.cuThreadExchangeStreamCaptureMode(mode))
        _alive.add(self)

    def _make(self, kernels: Sequence[BoundKernel]) -> None:
        graph = _made(driver.cuGraphCreate(0))
        weakref.finalize(self, driver.cuGraphDestroy, graph).atexit = False
        self._nodes: list[tuple[Any, Any]] = []
        before: list[Any] = []
        for kernel in kernels:
            node = kernel.node()
            before = [_made(driver.cuGraphAddKernelNode(graph, before, len(before), node))]
            self._nodes.append((before[0], node))
        self._started = _made(driver.cuGraphInstantiate(graph, 0))
        # The driver waits with it for launches that are under way.
        weakref.finalize(self, driver.cuGraphExecDestroy, self._started).atexit = False
        #: What to launch, for CUDA's runtime.
        self.handle = int(self._started)
        #: The addresses that its kernels were given.
        self.filled: tuple[int, ...] = ()

    def refill(self) -> None:
        """Take the kernels' arguments anew; launches that were made before keep theirs."""
        need_context()
        for node, arguments in self._nodes:
            _made(driver.cuGraphExecKernelNodeSetParams(self._started, node, arguments))


def _made(answer: tuple[Any, ...]) -> Any:
    """What the driver made. Raises CUDADriverError where it did not."""
    if answer[0]:
        raise cupy.cuda.driver.CUDADriverError(int(answer[0]))
    return answer[1] if len(answer) > 1 else None


class Launches:
    """Kernels that are started one after another, with arguments from the addresses of a call.

    ``fillings`` says how those are filled in, for the addresses of the first call.
    """

    def __init__(
        self,
        kernels: Sequence[BoundKernel],
        fillings: Callable[[Sequence[int]], Sequence[Filling]],
    ) -> None:
        self._kernels = kernels
        self._how: Callable[[Sequence[int]], Sequence[Filling]] | None = fillings
        self._starts = [kernel.start for kernel in kernels]
        self._fillings: Sequence[Filling] = ()
        self._filled: tuple[int, ...] = ()
        self._graphs: dict[int, LaunchGraph] = {}
        self._calls: dict[int, int] = {}
        self._lock = Lock()  # the driver reads what another thread would write

    def __call__(self, addresses: tuple[int, ...], stream: int) -> None:
        """Launch on a stream. Raises CUDADriverError or CUDARuntimeError where CUDA refuses."""
        with self._lock:
            graph = self._graphs.get(stream)
            if graph is not None and not _runtime.streamIsCapturing(stream):
                if addresses != graph.filled:
                    self._fill(addresses)
                    graph.filled = ()
                    graph.refill()
                    graph.filled = addresses
                _runtime.graphLaunch(graph.handle, stream)
                return
            self._fill(addresses)
            for start in self._starts:
                start(stream)
            if graph is None:
                self._called(stream)

    def _fill(self, addresses: tuple[int, ...]) -> None:
        if addresses == self._filled:
            return
        if self._how is not None:
            self._fillings, self._how = self._how(addresses), None
        self._filled = ()
        for fill in self._fillings:
            fill(addresses)
        self._filled = addresses

    def _called(self, stream: int) -> None:
        """Make a graph for a stream that has seen enough of these calls, if one may be made."""
        if len(self._calls) >= _MOST_COUNTED:
            self._calls.clear()
        calls = self._calls[stream] = self._calls.get(stream, 0) + 1
        if calls <= _CALLS_BEFORE or stream == PER_THREAD or len(_alive) >= _MOST_GRAPHS:
            return
        if _runtime.streamIsCapturing(stream):
            return
        if len(self._graphs) >= _MOST_STREAMS:
            self._graphs.clear()
        try:
            graph = LaunchGraph(self._kernels)
        except cupy.cuda.driver.CUDADriverError:
            self._calls[stream] = -_NEVER  # one by one, as before
            return
        graph.filled = self._filled
        self._graphs[stream] = graph
