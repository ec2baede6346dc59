"""cuFFT's kernels of a length, where CUDA does not say which they are (no GPU)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from tests.kernels.without_device import DriverError, driver, without_device

LENGTH, ROWS, INVALID = 1000, 64, 1
KERNEL = SimpleNamespace(
    func=7, kern=0, blockDimX=100, blockDimY=2, blockDimZ=1, sharedMemBytes=4096
)
"""A captured call has this kernel, in which a thread holds ten numbers."""
ANSWERS: dict[str, Any] = {
    "cuGraphGetNodes": (0, ["node"]),
    "cuGraphKernelNodeGetParams": (0, KERNEL),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (0, 4),
}


@pytest.fixture
def modules() -> Iterator[tuple[Any, ...]]:
    with without_device("dft.cufft_kernels", "runtime.memory.graph_memory") as found:
        yield found


def kernels(
    modules: tuple[Any, ...],
    monkeypatch: pytest.MonkeyPatch,
    queue: Callable[..., object] = lambda *_: None,
    workspace_bytes: int = 0,
    answers: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Return cuFFT's kernels as CUDA answers, and as cuFFT queues its call.

    Every capture that begins ends.
    """
    cupy, module, graph_memory = modules
    bindings = driver(**{**ANSWERS, **answers})
    for one in (module, graph_memory):
        monkeypatch.setattr(one, "driver_bindings", lambda: bindings)
    plan = SimpleNamespace(workspace_bytes=workspace_bytes, queue_in_own_graph=queue)
    monkeypatch.setattr(module, "plan_of", lambda *_: plan)
    found = module.kernels_of(LENGTH, ROWS, 0)
    stream = cupy.cuda.Stream.return_value
    assert stream.begin_capture.call_count == stream.end_capture.call_count
    return found


def test_a_single_kernel(modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    found = kernels(modules, monkeypatch)
    assert (found.several, found.numbers, found.blocks) == (False, 10, 4)


def test_several_are_not_captured(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = kernels(modules, monkeypatch, lambda *_: 1 // 0, workspace_bytes=512)
    assert found.several


def test_a_capture_that_another_thread_ended(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    queued: list[int] = []

    def ended_at_first(*_: Any) -> None:
        queued.append(len(queued))
        if len(queued) == 1:
            raise RuntimeError("cudaErrorStreamCaptureInvalidated")

    found = kernels(modules, monkeypatch, ended_at_first)
    assert found == kernels(modules, monkeypatch)
    assert found is not None
    assert len(queued) == 2


@pytest.mark.parametrize("error", [RuntimeError("CUFFT_EXEC_FAILED"), DriverError(INVALID)])
def test_a_call_that_may_not_be_captured(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: Any) -> None:
        raise error

    assert kernels(modules, monkeypatch, refuse) is None


@pytest.mark.parametrize(
    "answers",
    [
        {"cuGraphGetNodes": (INVALID, None)},
        {"cuGraphKernelNodeGetParams": (INVALID, None)},
        {"cuOccupancyMaxActiveBlocksPerMultiprocessor": (INVALID, 0)},
        {"cuOccupancyMaxActiveBlocksPerMultiprocessor": (0, 0)},
    ],
    ids=["nodes", "parameters", "occupancy", "no block fits"],
)
def test_what_cuda_does_not_say(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]
) -> None:
    assert kernels(modules, monkeypatch, answers=answers) is None


def test_a_kernel_of_a_library_is_asked_for_its_function(
    modules: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = SimpleNamespace(**vars(KERNEL) | {"func": 0, "kern": 9})
    answers = {"cuGraphKernelNodeGetParams": (0, library), "cuKernelGetFunction": (0, 11)}
    assert kernels(modules, monkeypatch, answers=answers).blocks == 4
