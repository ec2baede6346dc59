"""Kernels that follow each other, started together: a CUDA graph costs the host less than a launch.

From the third call of a form on a stream on there are graphs: each holds the addresses of one call,
and the one that was longest not used is given new ones where none holds them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import cupy
from cuda.bindings import driver

from argand.runtime.kernel import BoundKernel, Filling, need_context
from argand.runtime.workspace import PER_THREAD

_CALLS_BEFORE = 2
"""Of a form on a stream, that are not worth a graph, which takes some tens of microseconds."""
_PLACES = 4
"""Graphs of a form on a stream: a loop's arrays lie in a few places by turns."""
_MOST_STREAMS = 8
"""For which a form has graphs."""
_MOST_GRAPHS = 512
"""In this process; the driver keeps memory for each."""
_NEVER = -(1 << 60)
_alive: weakref.WeakSet[LaunchGraph] = weakref.WeakSet()
_runtime = cupy.cuda.runtime


class LaunchGraph:
    """Kernels one after another, with what is filled in when this is made, as one launch.

    Raises CUDADriverError where the driver refuses.
    """

    def __init__(self, kernels: Sequence[BoundKernel]) -> None:
        graph = _made(driver.cuGraphCreate(0))
        weakref.finalize(self, driver.cuGraphDestroy, graph).atexit = False
        self._nodes: list[tuple[Any, Any]] = []
        # Another thread may be capturing a stream, with which this has nothing to do.
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        mode = _made(driver.cuThreadExchangeStreamCaptureMode(relaxed))
        try:
            before: list[Any] = []
            for kernel in kernels:
                node = kernel.node()
                before = [_made(driver.cuGraphAddKernelNode(graph, before, len(before), node))]
                self._nodes.append((before[0], node))
            self._started = _made(driver.cuGraphInstantiate(graph, 0))
        finally:
            driver.cuThreadExchangeStreamCaptureMode(mode)
        # The driver waits with it for launches that are under way.
        weakref.finalize(self, driver.cuGraphExecDestroy, self._started).atexit = False
        #: What to launch, for CUDA's runtime.
        self.handle = int(self._started)
        _alive.add(self)

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

    ``fillings`` says how those are filled in, for the addresses of the first call. One kernel alone
    is never a graph, which takes the card some tenths of a microsecond longer, nor are cooperative
    launches.
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
        # By stream and addresses, the one that was used last at the end. Launches of one graph
        # wait for each other, whatever streams they are on.
        self._graphs: dict[int, dict[tuple[int, ...], LaunchGraph]] = {}
        self._calls: dict[int, int] = {}
        self._graphable = len(kernels) > 1 and not any(kernel.together for kernel in kernels)
        self._lock = Lock()  # the driver reads what another thread would write

    def __call__(self, addresses: tuple[int, ...], stream: int) -> None:
        """Launch on a stream. Raises CUDADriverError or CUDARuntimeError where CUDA refuses."""
        with self._lock:
            graphs = self._graphs.get(stream)
            if graphs is not None and not _runtime.streamIsCapturing(stream):
                graph = graphs.pop(addresses, None) or self._another(graphs, addresses)
                graphs[addresses] = graph
                _runtime.graphLaunch(graph.handle, stream)
                return
            self._fill(addresses)
            for start in self._starts:
                start(stream)
            if graphs is None and self._graphable:
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

    def _another(
        self, graphs: dict[tuple[int, ...], LaunchGraph], addresses: tuple[int, ...]
    ) -> LaunchGraph:
        """A graph with addresses that none has: a new one, or the one longest not used."""
        self._fill(addresses)
        if len(graphs) < _PLACES and len(_alive) < _MOST_GRAPHS:
            return LaunchGraph(self._kernels)
        graph = graphs.pop(next(iter(graphs)))
        graph.refill()
        return graph

    def _called(self, stream: int) -> None:
        """Make the first graph for a stream that has seen enough calls, if there may be one."""
        if len(self._graphs) >= _MOST_STREAMS:
            self._graphs.clear()
            self._calls.clear()
        calls = self._calls[stream] = self._calls.get(stream, 0) + 1
        if calls <= _CALLS_BEFORE or stream == PER_THREAD or len(_alive) >= _MOST_GRAPHS:
            return
        if _runtime.streamIsCapturing(stream):
            return
        try:
            self._graphs[stream] = {self._filled: LaunchGraph(self._kernels)}
        except cupy.cuda.driver.CUDADriverError:
            self._calls[stream] = _NEVER  # one by one, as before
