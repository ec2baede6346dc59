"""Calls launch graphs, or kernels where CUDA refuses a graph or a mark; no GPU is needed."""

from __future__ import annotations

import ctypes
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kernels.without_device import DriverError, RuntimeAPIError, driver, without_device

OUT_OF_MEMORY, STREAM, CALLS = 2, 5, 12


def reach(_stream: int, address: int, value: int, _flags: int) -> int:
    """Write a mark at once, as a GPU does that waits for the host."""
    ctypes.c_uint32.from_address(address).value = value
    return 0


@pytest.fixture
def modules() -> Iterator[tuple[Any, ...]]:
    """CuPy, the modules of graphs, of marks and of the driver's bindings."""
    names = ("runtime.graph", "runtime.backlog", "runtime.graph_memory")
    with without_device(*names) as found:
        yield found


def sequence_of(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, bindings: Any, kernels: int
) -> tuple[Any, list[int]]:
    """Return kernels that are launched one after another, and the streams of those that were."""
    _, graph, backlog, graph_memory = modules
    for module in (graph, graph_memory):
        monkeypatch.setattr(module, "driver_bindings", lambda: bindings)
    monkeypatch.setattr(backlog, "driver_function", lambda name: reach)
    monkeypatch.setattr(backlog, "pointer", int)
    started: list[int] = []
    one = SimpleNamespace(
        start=started.append, node=lambda: None, overlaps=True, cooperative=False,
    )  # fmt: skip
    return graph.LaunchSequence([one] * kernels, lambda addresses: []), started


def launched(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, bindings: Any, kernels: int = 1
) -> tuple[int, int]:
    """Return how many kernels and how many graphs ``CALLS`` calls at one address start."""
    sequence, started = sequence_of(modules, monkeypatch, bindings, kernels)
    for _ in range(CALLS):
        sequence((1 << 20, 1 << 21), STREAM)
    return len(started), modules[0].cuda.runtime.graphLaunch.call_count


@pytest.mark.parametrize("kernels", [1, 2])
def test_calls_become_graphs(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, kernels: int
) -> None:
    found = launched(modules, monkeypatch, driver(), kernels)
    assert found[0] + kernels * found[1] == kernels * CALLS
    assert found[1] >= CALLS // 2


def test_the_least_recently_used_graph_gets_new_addresses(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    bindings = driver()
    sequence, _ = sequence_of(modules, monkeypatch, bindings, kernels=2)
    refills = bindings.cuGraphExecKernelNodeSetParams
    places = [(number << 20, number << 21) for number in range(modules[1]._GRAPHS_PER_STREAM)]
    for at in [places[0]] * 3 + places:  # the first calls are before there are graphs
        sequence(at, STREAM)
    new = (1 << 40, 1 << 41)
    for at in (places[0], places[0], new):
        sequence(at, STREAM)
    assert refills.call_count == 2  # of both kernels
    for at in (places[0], *places[2:], new):
        sequence(at, STREAM)
    assert refills.call_count == 2
    sequence(places[1], STREAM)
    assert refills.call_count == 4


def test_a_graph_whose_arguments_are_refused_is_not_launched(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have some of the new ones, also where the addresses before come again as they were."""
    monkeypatch.setattr(modules[1], "_MAX_GRAPHS", 1)
    bindings = driver(cuGraphExecKernelNodeSetParams=(OUT_OF_MEMORY,))
    sequence, _ = sequence_of(modules, monkeypatch, bindings, kernels=2)
    at = (1 << 20, 1 << 21)
    for _ in range(CALLS):
        sequence(at, STREAM)
    assert bindings.cuGraphInstantiate.call_count == 1
    with pytest.raises(DriverError):
        sequence((1 << 30, 1 << 31), STREAM)
    sequence(at, STREAM)
    assert bindings.cuGraphInstantiate.call_count == 2


def interrupt(work: Callable[[], object], between: Callable[[], object]) -> None:
    """Repeat ``work`` until KeyboardInterrupt ends it, again and again, and each time ``between``.

    Python raises that behind any call, also behind one that takes a lock.
    """

    def raise_interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, raise_interrupt)
    try:
        for _ in range(300):
            with suppress(KeyboardInterrupt):
                # Again after 50 ms: Python ignores what is raised within a destructor.
                signal.setitimer(signal.ITIMER_REAL, 2e-4, 0.05)
                while True:
                    work()
            signal.setitimer(signal.ITIMER_REAL, 0)
            between()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("idle", [False, True])
def test_what_is_interrupted_leaves_calls_to_run(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, idle: bool
) -> None:
    """Neither a call nor a look for idle graphs leaves the lock of launches held."""
    sequence, _ = sequence_of(modules, monkeypatch, driver(), kernels=2)
    runtime, at = modules[0].cuda.runtime, (1 << 20, 1 << 21)
    # Mocks would take so long that few interrupts come elsewhere.
    runtime.graphLaunch, runtime.streamIsCapturing = max, frozenset().__contains__

    def call_from_another_thread() -> None:
        other = Thread(target=sequence, args=(at, STREAM), daemon=True)
        other.start()
        other.join(timeout=10)
        assert not other.is_alive()

    def look() -> None:
        sequence.give_up_idle(since=math.inf)

    interrupt(look if idle else lambda: sequence(at, STREAM), call_from_another_thread)


def test_graphs_are_given_up_where_no_launch_is_under_way(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    sequence, _ = sequence_of(modules, monkeypatch, driver(), kernels=2)
    at = (1 << 20, 1 << 21)

    def graphs() -> int:
        return sum(len(on.graphs) for on in sequence._streams.values())

    for _ in range(CALLS):
        sequence(at, STREAM)
    assert graphs() == 1
    sequence.give_up_idle(since=0.0)  # there were launches since
    with sequence._lock:  # one is under way
        sequence.give_up_idle(since=math.inf)
    assert graphs() == 1
    sequence.give_up_idle(since=math.inf)
    assert graphs() == 0


@pytest.mark.parametrize(
    ("name", "answer"),
    [("cuGraphCreate", (OUT_OF_MEMORY, None)), ("cuGraphInstantiate", (OUT_OF_MEMORY, None))],
)
def test_the_driver_refuses_a_graph(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, name: str, answer: Any
) -> None:
    bindings = driver(**{name: answer})
    assert launched(modules, monkeypatch, bindings, kernels=2) == (2 * CALLS, 0)
    assert getattr(bindings, name).call_count == 1  # it is not asked again


def test_memory_for_a_mark_is_refused(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(nbytes: int) -> Any:
        asked.append(nbytes)
        raise RuntimeAPIError("out of memory")

    modules[0].cuda.alloc_pinned_memory = refuse
    assert launched(modules, monkeypatch, driver()) == (CALLS, 0)
    assert len(asked) == 1


def test_another_error_of_a_mark_is_raised(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what CUDA refuses is left out."""
    modules[0].cuda.alloc_pinned_memory = lambda nbytes: 1 // 0
    with pytest.raises(ZeroDivisionError):
        launched(modules, monkeypatch, driver())
