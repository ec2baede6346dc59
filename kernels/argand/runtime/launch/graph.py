"""Sequences of kernels as CUDA graphs: one graph costs the host less than any launch of kernels.

From the third call of a form on a stream, calls launch graphs, but where the stream is behind the
host (`runtime.launch.backlog`) and its kernels may begin early: these are launched one by one then.
Each graph holds the addresses of one call. Where none holds a call's addresses, the least recently
used graph of several kernels gets them; a single kernel is launched by itself, until its addresses
have come again. Where the process has as many graphs as it may, forms that have launched nothing
for a second give their graphs up.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from threading import Lock
from time import monotonic
from typing import Any

import cupy

from argand.runtime.driver.driver_bindings import checked, driver_bindings
from argand.runtime.launch.backlog import NEVER_BEHIND, Backlog, backlog_of
from argand.runtime.launch.kernel import ArgumentUpdate, BoundKernel, ensure_context
from argand.runtime.launch.kernel_trace import note, watching
from argand.runtime.memory.graph_memory import destroy_with, relaxed_capture
from argand.runtime.memory.workspace import PER_THREAD

_CALLS_BEFORE = 2
"""Calls of a form on a stream before there is a graph, which takes tens of microseconds to make."""
_GRAPHS_PER_STREAM = 8
"""Graphs of a form on a stream: a loop's arrays alternate between a few addresses."""
_MAX_MISSED = 8
"""Addresses of a single kernel that are kept until they come again."""
_MAX_LEFT_OUT = 64
"""Launches of a single kernel, at addresses that came again, that no graph had room for; then its
graphs are dropped: the loop is another one."""
_MAX_STREAMS = 8
"""Streams on which a form has graphs."""
_MAX_GRAPHS = 512
"""Graphs of this process; the driver keeps memory for each."""
_IDLE_SECONDS = 1.0
"""Seconds without a launch after which a form's graphs may go. A loop over more forms than there
are graphs comes round sooner, and keeps those that it has."""
_NEVER = -(1 << 60)
"""Calls of a stream in which no graph can be made: it never counts up to one."""
_alive: weakref.WeakSet[LaunchGraph] = weakref.WeakSet()
_with_graphs: weakref.WeakSet[LaunchSequence] = weakref.WeakSet()
_with_graphs_lock = Lock()
_looked_for_idle = -_IDLE_SECONDS
_runtime = cupy.cuda.runtime


class LaunchGraph:
    """Kernels as one launch, with the arguments that they have when it is made.

    ``after`` has for each kernel the numbers of those it waits for; None is one after another.

    Raises CUDADriverError where the driver refuses.
    """

    def __init__(
        self, kernels: Sequence[BoundKernel], after: Sequence[Sequence[int]] | None = None
    ) -> None:
        ensure_context()  # without one the driver does not refuse: it crashes
        driver = driver_bindings()
        # CUDA 12 has two functions; the second takes the kinds of edges.
        connect = getattr(driver, "cuGraphAddDependencies_v2", driver.cuGraphAddDependencies)
        graph = checked(driver.cuGraphCreate(0))
        destroy_with(self, driver.cuGraphDestroy, graph)
        self._nodes: list[tuple[Any, Any]] = []
        with relaxed_capture():
            for number, kernel in enumerate(kernels):
                node, waits = kernel.node(), range(number)[-1:] if after is None else after[number]
                before = [self._nodes[other][0] for other in waits]
                added = checked(driver.cuGraphAddKernelNode(graph, None, 0, node))
                self._nodes.append((added, node))
                count = len(before)
                edges = [_edge(overlaps=kernel.overlaps and count == 1)] * count
                checked(connect(graph, before, [added] * count, edges, count))
            self._started = checked(driver.cuGraphInstantiate(graph, 0))
        # The driver destroys it after the launches that are under way.
        destroy_with(self, driver.cuGraphExecDestroy, self._started)
        #: The executable graph, for CUDA's runtime.
        self.handle = int(self._started)
        _alive.add(self)

    def refill(self) -> None:
        """Read the kernels' arguments again; earlier launches keep theirs."""
        ensure_context()
        set_arguments = driver_bindings().cuGraphExecKernelNodeSetParams
        for node, arguments in self._nodes:
            checked(set_arguments(self._started, node, arguments))


def _edge(*, overlaps: bool) -> Any:
    """Return the kind of an edge to a kernel: it waits itself, or the driver starts it later."""
    driver = driver_bindings()
    found = driver.CUgraphEdgeData()
    if overlaps:
        found.type = int(driver.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
        found.from_port = driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
    return found


def _room_for_one(most: int) -> bool:
    """Return whether the process may have one more graph, of ``most``.

    Where it has all of them, forms that lie idle give their graphs up; such forms are searched for
    once a second.
    """
    global _looked_for_idle
    if len(_alive) < most:
        return True
    now = monotonic()
    if now - _looked_for_idle < _IDLE_SECONDS:
        return False
    _looked_for_idle = now
    with _with_graphs_lock:
        holders = list(_with_graphs)
    for one in holders:
        one.give_up_idle(now - _IDLE_SECONDS)
    return len(_alive) < most


class _StreamGraphs:
    """Graphs of a form on one stream, by addresses, the most recently used one last."""

    def __init__(self, backlog: Backlog, graphs: dict[tuple[int, ...], LaunchGraph]) -> None:
        self.backlog, self.graphs = backlog, graphs
        #: The graph of the last launch, and its addresses.
        self.last: LaunchGraph | None = None
        self.at: tuple[int, ...] = ()


class LaunchSequence:
    """Kernels that are launched one after another, with arguments from the addresses of a call.

    ``updates``, called with the addresses of the first call, says how the arguments follow from
    them. Cooperative launches are not graphs. ``after`` is that of `LaunchGraph`: kernels that do
    not wait for each other fill the card together.
    """

    def __init__(
        self,
        kernels: Sequence[BoundKernel],
        updates: Callable[[Sequence[int]], Sequence[ArgumentUpdate]],
        after: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self._kernels, self._after = kernels, after
        self._make_updates: Callable[[Sequence[int]], Sequence[ArgumentUpdate]] | None = updates
        self._starts = [kernel.start for kernel in kernels]
        self._words: list[tuple[memoryview, int, int, int]] = []
        self._moves: list[tuple[Callable[[int], None], int, int]] = []
        self._written: tuple[int, ...] = ()
        # Each stream has its own graphs, because launches of one graph wait for each other, also
        # across streams.
        self._streams: dict[int, _StreamGraphs] = {}
        self._begins_early = after is None and all(kernel.overlaps for kernel in kernels)
        self._calls: dict[int, int] = {}
        self._single = len(kernels) == 1
        self._missed: set[tuple[int, ...]] = set()
        self._left_out = 0
        self._launched = 0.0  # when, in seconds of the clock
        self._graphable = not any(kernel.cooperative for kernel in kernels)
        # The driver reads what another thread would write. A context, because Ctrl-C may end a call
        # between `acquire` and the `try` that would release it. In CPython 3.14 it may end one at
        # the beginning of a context too (python/cpython issue 148874).
        self._lock = Lock()
        #: Its launches' name in records; none where the caller notes one.
        self.name = ""

    def __call__(self, addresses: tuple[int, ...], stream: int) -> None:
        """Launch on a stream. Raises CUDADriverError or CUDARuntimeError where CUDA refuses."""
        if watching and self.name:
            note(self.name)
        with self._lock:
            now = self._launched = monotonic()
            on = self._streams.get(stream)
            # The legacy stream, which is 0, cannot be captured.
            captured = stream and _runtime.streamIsCapturing(stream)
            if on is not None and not captured:
                backlog = on.backlog
                if now >= backlog.due:
                    backlog.look(now)
                graph = None
                if not backlog.behind:
                    # A plan's addresses are the same object again: they are not to be hashed.
                    graph = on.last if addresses is on.at else on.graphs.get(addresses)
                    if graph is None or graph is not on.last:  # else it stands last already
                        on.at = ()  # where the driver refuses, the last one has other arguments
                        graph = on.last = self._graph_of(on.graphs, addresses)
                    on.at = addresses
                if graph is not None:
                    _runtime.graphLaunch(graph.handle, stream)
                    return
            if addresses != self._written:
                self._write(addresses)
            for start in self._starts:
                start(stream)
            if on is None and self._graphable and not captured:
                self._count_call(stream)

    def _graph_of(
        self, graphs: dict[tuple[int, ...], LaunchGraph], addresses: tuple[int, ...]
    ) -> LaunchGraph | None:
        """Return the graph of these addresses, the most recently used one then."""
        graph = graphs.pop(addresses, None)
        if graph is None and (not self._single or self._comes_again(graphs, addresses)):
            graph = self._next_graph(graphs, addresses)
        if graph is not None:
            graphs[addresses] = graph
        return graph

    def _comes_again(
        self, graphs: dict[tuple[int, ...], LaunchGraph], addresses: tuple[int, ...]
    ) -> bool:
        """Return whether a single kernel gets one more graph, which takes longer than a launch."""
        if addresses not in self._missed:
            if len(self._missed) >= _MAX_MISSED:
                self._missed.clear()
            self._missed.add(addresses)
            return False
        if len(graphs) < _GRAPHS_PER_STREAM:
            return _room_for_one(_MAX_GRAPHS // 2)
        self._left_out += 1
        if self._left_out > _MAX_LEFT_OUT:
            self._left_out = 0
            graphs.clear()
        return False

    def _write(self, addresses: tuple[int, ...]) -> None:
        """Write the arguments of all kernels for these addresses."""
        if self._make_updates is not None:
            for update in self._make_updates(addresses):
                self._words += update.words
                self._moves += update.moves
            self._make_updates = None
        self._written = ()
        for words, index, base, offset in self._words:
            words[index] = addresses[base] + offset
        for move, base, offset in self._moves:
            move(addresses[base] + offset)
        self._written = addresses

    def _next_graph(
        self, graphs: dict[tuple[int, ...], LaunchGraph], addresses: tuple[int, ...]
    ) -> LaunchGraph:
        """Return a graph with these addresses: a new one, or the least recently used one."""
        if addresses != self._written:
            self._write(addresses)
        if len(graphs) < _GRAPHS_PER_STREAM and (not graphs or _room_for_one(_MAX_GRAPHS)):
            return self._new_graph()
        graph = graphs.pop(next(iter(graphs)))
        graph.refill()
        return graph

    def _new_graph(self) -> LaunchGraph:
        with _with_graphs_lock:
            _with_graphs.add(self)
        return LaunchGraph(self._kernels, self._after)

    def give_up_idle(self, since: float) -> None:
        """Drop the graphs if there was no launch since then, and none is under way.

        A launch that begins meanwhile is waited for. Threads cannot wait for each other in a
        circle: each holds the lock of its own launch before it looks whether another is held.
        """
        if self._launched < since and not self._lock.locked():
            with self._lock:  # as in a call: Ctrl-C cannot leave it locked
                if self._launched < since:
                    self._forget()

    def _forget(self) -> None:
        """Drop the graphs of all streams."""
        self._streams.clear()
        self._calls.clear()

    def _count_call(self, stream: int) -> None:
        """Count a call on a stream, and make the stream's first graph after enough of them."""
        if len(self._streams) >= _MAX_STREAMS:
            self._forget()
        calls = self._calls[stream] = self._calls.get(stream, 0) + 1
        if calls <= _CALLS_BEFORE or stream == PER_THREAD or not _room_for_one(_MAX_GRAPHS):
            return
        try:
            graphs = {} if self._single else {self._written: self._new_graph()}
            backlog = backlog_of(stream) if self._begins_early else NEVER_BEHIND
            self._streams[stream] = _StreamGraphs(backlog, graphs)
        except (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError):
            self._calls[stream] = _NEVER  # launched one by one from now on
