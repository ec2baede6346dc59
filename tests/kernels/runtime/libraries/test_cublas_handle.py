"""The handle of cuBLAS that all threads share, on a library that notes its calls (no GPU)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from typing import Any

import pytest

from tests.kernels.without_device import without_device

HANDLE, BYTES = 9, 32 << 20
Noted = list[Any]


@pytest.fixture
def noted() -> Noted:
    return []


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, noted: Noted) -> Iterator[Any]:
    def routine(_: str, name: str, *types: Any) -> Callable[..., None]:
        return lambda *given: noted.append((name, *given))

    with without_device("runtime.libraries.cublas") as (cupy, found):
        cupy.cuda.cublas.create.side_effect = lambda: HANDLE
        monkeypatch.setattr(found, "library_routine", routine)
        monkeypatch.setattr(found, "relaxed_capture", nullcontext)
        yield found


def product(noted: Noted) -> Callable[..., None]:
    return lambda *given: noted.append(("product", *given))


def test_a_stream_and_its_workspace_are_set_when_they_change(module: Any, noted: Noted) -> None:
    handle = module.cublas_handle(0)
    for stream, address in ((1, 100), (1, 100), (2, 200), (2, None), (2, None), (2, 200)):
        memory = None if address is None else module.Workspace(address, BYTES)
        handle.call(product(noted), stream, memory, 5)
    handle.call(product(noted), 2, module.Workspace(200, BYTES // 2), 5)
    set_stream, set_workspace = "cublasSetStream_v2", "cublasSetWorkspace_v2"
    ran = ("product", HANDLE, 5)
    assert noted == [
        (set_stream, HANDLE, 1), (set_workspace, HANDLE, 100, BYTES), ran, ran,
        (set_stream, HANDLE, 2), (set_workspace, HANDLE, 200, BYTES), ran,
        (set_stream, HANDLE, 2), ran, ran,
        (set_stream, HANDLE, 2), (set_workspace, HANDLE, 200, BYTES), ran,
        (set_stream, HANDLE, 2), (set_workspace, HANDLE, 200, BYTES // 2), ran,
    ]  # fmt: skip


def test_the_workspace_within_a_limit(module: Any) -> None:
    limits = importlib.import_module("argand.runtime.memory.workspace_limit")
    for limit, nbytes in (
        (None, BYTES), (1 << 40, BYTES), (BYTES, BYTES), (BYTES - 1, BYTES // 2),
        (40_000, 1 << 15), (1 << 14, 1 << 14),
    ):  # fmt: skip
        with limits.workspace_limit(limit):
            assert module.workspace_bytes() == nbytes
    for limit in (0, (1 << 14) - 1):
        with limits.workspace_limit(limit), pytest.raises(limits.WorkspaceError) as error:
            module.workspace_bytes()
        assert error.value.needed == 1 << 14


def test_an_error_of_a_product_leaves_the_handle_free(module: Any, noted: Noted) -> None:
    handle = module.cublas_handle(0)
    with pytest.raises(ZeroDivisionError):
        handle.call(lambda *_: 1 // 0, 1, module.Workspace(100, BYTES))
    handle.call(product(noted), 1, module.Workspace(100, BYTES))
    assert noted[-1] == ("product", HANDLE)


def test_without_room_the_library_has_its_own_workspace(
    module: Any, monkeypatch: pytest.MonkeyPatch, noted: Noted
) -> None:
    def refuse(*_: Any) -> int:
        raise MemoryError

    handle = module.cublas_handle(0)
    monkeypatch.setattr(module, "library_memory", refuse)
    memory = handle.call_memory(1)
    assert memory is None
    handle.call(product(noted), 1, memory)
    assert noted == [("cublasSetStream_v2", HANDLE, 1), ("product", HANDLE)]


def test_without_room_a_graph_does_not_share_the_workspace_of_the_library(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> int:
        raise MemoryError

    monkeypatch.setattr(module, "library_memory", refuse)
    monkeypatch.setattr(module, "is_captured", lambda stream: stream == 2)
    handle = module.cublas_handle(0)
    assert handle.call_memory(1) is None
    with pytest.raises(MemoryError):
        handle.call_memory(2)


def test_threads_share_one_handle_a_device(module: Any) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = {id(handle) for handle in pool.map(module.cublas_handle, [0] * 64)}
    assert len(found) == 1
    assert id(module.cublas_handle(1)) not in found


def test_a_call_comes_between_no_steps_of_another_threads(module: Any, noted: Noted) -> None:
    """Else a product would run on the stream, and in the workspace, of the other one."""
    handle = module.cublas_handle(0)
    other: list[Future[None]] = []

    def product_meanwhile(*_: Any) -> None:
        other.append(pool.submit(handle.call, product(noted), 2, module.Workspace(200, BYTES)))
        wait(other, 0.1)  # for as long as the other one waits for the handle
        noted.append("first done")

    with ThreadPoolExecutor(1) as pool:
        handle.call(product_meanwhile, 1, module.Workspace(100, BYTES))
    other[0].result()
    names = [one if isinstance(one, str) else one[0] for one in noted]
    steps = ["cublasSetStream_v2", "cublasSetWorkspace_v2"]
    assert names == [*steps, "first done", *steps, "product"]
