"""Kernels that follow each other, started together: a CUDA graph costs the host less than a launch.

A graph holds the addresses of one call on one stream, and is made when that call comes for the
third time; a loop over the same arrays is such calls. Others start their kernels one by one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import cupy
from cuda.bindings import driver

from argand.cuda_kernel import BoundKernel, Filling
from argand.cuda_workspace import PER_THREAD

_CALLS_BEFORE = 2
"""With the same addresses, that are not worth a graph, which takes some tens of microseconds."""
_MOST_OF_FORM = 8
"""Graphs of one form of call: a few places for results, a few streams."""
_UNUSED_CALLS = 1000
"""Of a form, after which a graph that none of them was gives way to another."""
_MOST_COUNTED = 64
"""Addresses of which calls are counted, after which they are counted anew."""
_MOST_GRAPHS = 512
"""In this process; the driver keeps memory for each."""
_alive: weakref.WeakSet[LaunchGraph] = weakref.WeakSet()
_runtime = cupy.cuda.runtime
_Call = tuple[int, tuple[int, ...]]
"""A stream and addresses."""


class LaunchGraph:
    """Kernels one after another, with what is filled in when this is made, as one launch.

    Raises CUDADriverError where the driver refuses.
    """

    def __init__(self, kernels: Sequence[BoundKernel]) -> None:
        #: How many calls there had been at the last one that was this.
        self.used = 0
        # Another thread may be capturing a stream, with which this has nothing to do.
        relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        graph = _made(driver.cuGraphCreate(0))
        mode = _made(driver.cuThreadExchangeStreamCaptureMode(relaxed))
        try:
            before: list[Any] = []
            for kernel in kernels:
                node = driver.cuGraphAddKernelNode(graph, before, len(before), kernel.node())
                before = [_made(node)]
            started = _made(driver.cuGraphInstantiate(graph, 0))
        finally:
            driver.cuGraphDestroy(graph)
            driver.cuThreadExchangeStreamCaptureMode(mode)
        # The driver waits with it for launches that are under way.
        weakref.finalize(self, driver.cuGraphExecDestroy, started).atexit = False
        #: What to launch, for CUDA's runtime.
        self.handle = int(started)
        _alive.add(self)


def _made(answer: tuple[Any, ...]) -> Any:
    """What the driver made. Raises CUDADriverError where it did not."""
    if answer[0]:
        raise cupy.cuda.driver.CUDADriverError(int(answer[0]))
    return answer[1]


class Launches:
    """Kernels that are started one after another, with arguments from the addresses of a call.

    ``fillings`` says how those are filled in, for the addresses of the first call. One kernel alone
    is never a graph, with which the card begins half a microsecond later.
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
        self._graphs: dict[_Call, LaunchGraph] = {}
        self._seen: dict[_Call, int] = {}
        self._calls = 0
        self._lock = Lock()  # the driver reads what another thread would write

    def __call__(self, addresses: tuple[int, ...], stream: int) -> None:
        """Launch on a stream. Raises CUDADriverError or CUDARuntimeError where CUDA refuses."""
        with self._lock:
            self._calls += 1
            graph = self._graphs.get((stream, addresses))
            if graph is not None and not _runtime.streamIsCapturing(stream):
                graph.used = self._calls
                _runtime.graphLaunch(graph.handle, stream)
                return
            self._fill(addresses)
            for start in self._starts:
                start(stream)
            if graph is None and len(self._starts) > 1:
                self._see((stream, addresses))

    def _fill(self, addresses: tuple[int, ...]) -> None:
        if addresses == self._filled:
            return
        if self._how is not None:
            self._fillings, self._how = self._how(addresses), None
        self._filled = ()
        for fill in self._fillings:
            fill(addresses)
        self._filled = addresses

    def _see(self, call: _Call) -> None:
        """Count a call; make a graph where it came often enough and there may be one."""
        if len(self._seen) >= _MOST_COUNTED:
            self._seen.clear()
        count = self._seen[call] = self._seen.get(call, 0) + 1
        stream = call[0]
        if count <= _CALLS_BEFORE or stream == PER_THREAD or not self._room():
            return
        if _runtime.streamIsCapturing(stream):
            return
        try:
            graph = self._graphs[call] = LaunchGraph(self._kernels)
        except cupy.cuda.driver.CUDADriverError:
            self._seen[call] = -_UNUSED_CALLS  # one by one, as before
            return
        graph.used = self._calls

    def _room(self) -> bool:
        """Whether there may be one more graph; those that were not used for long make room."""
        if len(self._graphs) >= _MOST_OF_FORM:
            since = self._calls - _UNUSED_CALLS
            self._graphs = {call: x for call, x in self._graphs.items() if x.used > since}
        return len(self._graphs) < _MOST_OF_FORM and len(_alive) < _MOST_GRAPHS
