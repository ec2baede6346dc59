"""Calls launch graphs, or kernels where CUDA refuses a graph or a mark; no GPU is needed."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterator
from dis import opname
from functools import partial
from itertools import count
from threading import Thread
from types import FrameType, SimpleNamespace
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
    names = ("runtime.launch.graph", "runtime.launch.backlog", "runtime.memory.graph_memory")
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


def test_all_forms_on_a_stream_share_its_marks(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU with work for many calls reaches no mark; passes of a circuit are a form each."""
    cupy, graph, backlog, _ = modules
    times, marks = count(), []
    monkeypatch.setattr(graph, "monotonic", lambda: 5e-6 * next(times))
    forms = [sequence_of(modules, monkeypatch, driver(), kernels=1) for _ in range(8)]
    monkeypatch.setattr(
        backlog, "driver_function", lambda name: lambda *args: marks.append(args) or 0
    )
    for _ in range(CALLS):
        for sequence, _ in forms:
            sequence((1 << 20, 1 << 21), STREAM)
    seconds = 5e-6 * next(times)
    assert 0 < len(marks) <= seconds / (backlog.BEHIND_SECONDS + backlog.HOLDS_SECONDS) + 1
    graphs = cupy.cuda.runtime.graphLaunch.call_count
    assert sum(len(started) for _, started in forms) == CALLS * len(forms) - graphs
    assert 5e-6 * graphs <= backlog.BEHIND_SECONDS + 5e-6  # until the first mark is asked for


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


def interrupted(file: str, number: int, work: Callable[[], object]) -> bool:
    """Raise KeyboardInterrupt in ``work`` after call ``number`` in a file; return whether it came.

    Python raises it after any call that has returned, also after one that takes a lock.
    """
    left = number

    def enter(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != file:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        has_called = False

        def step(frame: FrameType, event: str, _: object) -> Any:
            nonlocal left, has_called
            if event == "opcode":
                if has_called:
                    left -= 1
                    if left == -1:
                        raise KeyboardInterrupt
                has_called = opname[frame.f_code.co_code[frame.f_lasti]].startswith("CALL")
            return step

        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return left < 0


# Python reports an interrupt within a destructor, and forgets it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("idle", [False, True])
def test_what_is_interrupted_leaves_calls_to_run(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, idle: bool
) -> None:
    """Neither calls nor a look for idle graphs leaves the lock of launches held."""
    at = (1 << 20, 1 << 21)

    def call(sequence: Any, calls: int) -> None:
        for _ in range(calls):
            sequence(at, STREAM)

    for number in count():
        sequence, _ = sequence_of(modules, monkeypatch, driver(), kernels=2)
        call(sequence, 4 if idle else 0)
        look = partial(sequence.give_up_idle, since=math.inf)
        work = look if idle else partial(call, sequence, 4)
        has_come = interrupted(modules[1].__file__, number, work)
        other = Thread(target=call, args=(sequence, 1), daemon=True)
        other.start()
        other.join(timeout=10)
        assert not other.is_alive()
        if not has_come:
            break
    assert number > (3 if idle else 30)


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
