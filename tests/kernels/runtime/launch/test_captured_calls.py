"""Calls of a library as graphs, where captures of them fail (no GPU)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest

from tests.kernels.without_device import RuntimeAPIError, driver, without_device

CALL, STREAM = (1 << 20, 1 << 21), 5


@pytest.fixture
def modules() -> Iterator[tuple[Any, ...]]:
    names = ("runtime.launch.captured_graph", "runtime.memory.graph_memory")
    with without_device(*names) as found:
        yield found


def launches(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, failing: int, calls: int
) -> tuple[list[bool], int]:
    """Return which of some calls were graphs, and how many captures began; the first ones fail."""
    cupy, captured_graph, graph_memory = modules
    monkeypatch.setattr(graph_memory, "driver_bindings", driver)
    stream = cupy.cuda.Stream.return_value
    graph = stream.end_capture.return_value
    stream.end_capture.side_effect = [RuntimeAPIError("901")] * failing + [graph] * calls
    found = captured_graph.CapturedCalls(lambda *_: None)
    return [found.launch(CALL, STREAM) for _ in range(calls)], stream.begin_capture.call_count


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_capture_that_another_thread_ended_is_tried_again(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """The first call is none: its addresses have not come again."""
    found, captures = launches(modules, monkeypatch, failing, 6)
    assert found == [False] * (1 + failing) + [True] * (5 - failing)
    assert captures == failing + 1


def test_a_call_whose_captures_fail_is_captured_no_more(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, captures = launches(modules, monkeypatch, 9, 9)
    assert not any(found)
    assert captures == modules[1].ATTEMPTS


def test_a_graph_that_is_there_is_launched_on_any_stream(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    cupy, captured_graph, graph_memory = modules
    monkeypatch.setattr(graph_memory, "driver_bindings", driver)
    found = captured_graph.CapturedCalls(lambda *_: None)
    assert not found.again(CALL, STREAM)
    assert not found.launch(CALL, STREAM)
    assert not found.again(CALL, STREAM)
    assert found.launch(CALL, STREAM)
    assert found.again(CALL, STREAM + 1)
    assert cupy.cuda.runtime.graphLaunch.call_args.args[1] == STREAM + 1
    cupy.cuda.runtime.streamIsCapturing.return_value = True
    assert not found.again(CALL, STREAM)


def is_free(lock: Any) -> bool:
    """Return whether another thread could take a lock."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: lock.acquire(blocking=False) and not lock.release()).result()


def test_nobody_waits_for_the_gpu_while_a_call_is_captured(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, captured_graph, graph_memory = modules
    monkeypatch.setattr(graph_memory, "driver_bindings", driver)
    seen: list[bool] = []
    calls = captured_graph.CapturedCalls(lambda *_: seen.append(is_free(captured_graph.CAPTURING)))
    for _ in range(2):
        calls.launch(CALL, STREAM)
    assert seen == [False]
    assert is_free(captured_graph.CAPTURING)


def test_libraries_wait_for_the_gpu_while_no_call_is_captured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan of cuFFT's and a handle of cuBLAS's."""
    names = ("runtime.launch.captured_graph", "dft.cufft_plans", "runtime.libraries.cublas")
    with without_device(*names) as (cupy, captured_graph, cufft_plans, cublas):
        seen: list[bool] = []

        def made(*_: Any) -> int:
            seen.append(is_free(captured_graph.CAPTURING))
            return 9

        monkeypatch.setattr(cufft_plans, "_plan", made)
        monkeypatch.setattr(cublas, "relaxed_capture", nullcontext)
        monkeypatch.setattr(cublas, "library_routine", lambda *_: None)
        cupy.cuda.cublas.create.side_effect = made
        cufft_plans.plan_of(0, 8, 1, 0)
        cublas.cublas_handle(0)
        assert seen == [False, False]
        assert is_free(captured_graph.CAPTURING)
