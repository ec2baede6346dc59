"""Kernels whose graph or mark CUDA refuses are launched one by one from then on (no GPU)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kernels.without_device import RuntimeAPIError, driver, without_device

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


def launched(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, bindings: Any, kernels: int = 1
) -> tuple[int, int]:
    """Return how many kernels and how many graphs ``CALLS`` calls at one address start."""
    cupy, graph, backlog, graph_memory = modules
    for module in (graph, graph_memory):
        monkeypatch.setattr(module, "driver_bindings", lambda: bindings)
    monkeypatch.setattr(backlog, "driver_function", lambda name: reach)
    monkeypatch.setattr(backlog, "pointer", int)
    started: list[int] = []
    one = SimpleNamespace(
        start=started.append, node=lambda: None, overlaps=True, cooperative=False,
    )  # fmt: skip
    sequence = graph.LaunchSequence([one] * kernels, lambda addresses: [])
    for _ in range(CALLS):
        sequence((1 << 20, 1 << 21), STREAM)
    return len(started), cupy.cuda.runtime.graphLaunch.call_count


@pytest.mark.parametrize("kernels", [1, 2])
def test_calls_become_graphs(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, kernels: int
) -> None:
    found = launched(modules, monkeypatch, driver(), kernels)
    assert found[0] + kernels * found[1] == kernels * CALLS
    assert found[1] >= CALLS // 2


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
