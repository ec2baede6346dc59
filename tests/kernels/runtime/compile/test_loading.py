"""Kernels of one call are compiled together, by threads that its first launch waits for."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest
from argand.runtime.compile import loading
from argand.runtime.compile.compiler import Compiled
from argand.runtime.compile.loading import NotLaunchedError, PendingKernel, compiling_only, load
from argand.runtime.compile.nvrtc import CompileError

SOURCE = 'extern "C" __global__ void f(int* x) {{ *x = {}; }}'
SECONDS = 20
"""How long a test waits for another thread before it fails."""


class Module:
    """CuPy's, without a GPU: a kernel's address is what was loaded."""

    def load(self, cubin: bytes) -> None:
        self.loaded = cubin

    def get_function(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, module=self, ptr=int(self.loaded))


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    driver = SimpleNamespace(funcGetAttribute=lambda *_: 0)
    cuda = SimpleNamespace(driver=driver, Device=lambda: SimpleNamespace(id=0))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)
    monkeypatch.setitem(sys.modules, "cupy.cuda.function", SimpleNamespace(Module=Module))
    monkeypatch.setattr(loading, "_begun", {})
    monkeypatch.setattr(loading, "_modules", [])
    yield
    loading._load.cache_clear()
    loading._module.cache_clear()


Call = Callable[[], object]


def compiled(number: int) -> Compiled:
    return Compiled(Path(), str(number).encode(), {}, (), cached=False)


def test_kernels_are_compiled_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    together = Barrier(3)

    def compile_cubin(source: str, target: str, *, begun: Call) -> Compiled:
        running.append(source)
        begun()
        together.wait(SECONDS)  # none goes on before all have begun
        return compiled(len(source))

    monkeypatch.setattr(loading, "compile_cubin", compile_cubin)
    kernels, running = [], list[str]()
    for source in ("a", "bb", "ccc"):
        kernels.append(PendingKernel(source, "sm_80", "f"))
        assert running[-1] == source  # before this thread does anything else
    assert [kernel.ptr for kernel in kernels] == [1, 2, 3]


def test_a_source_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def compile_cubin(source: str, target: str, *, begun: Call) -> Compiled:
        asked.append(source)
        return compiled(7)

    monkeypatch.setattr(loading, "compile_cubin", compile_cubin)
    first, second = (PendingKernel("a", "sm_80", "f") for _ in range(2))
    assert (first.ptr, second.ptr, first.ptr) == (7, 7, 7)
    assert PendingKernel("a", "sm_80", "g").ptr == 7
    assert asked == ["a"]


def test_a_module_stays_loaded_behind_any_number_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that was made of its kernel may be launched at any time."""
    monkeypatch.setattr(loading, "compile_cubin", lambda source, *_, **__: compiled(int(source)))
    modules = [
        weakref.ref(load(str(number), "sm_80", "f").function.module) for number in range(1100)
    ]
    gc.collect()
    assert all(module() is not None for module in modules)


def test_of_threads_that_load_at_once_each_keeps_its_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together = Barrier(2)

    def compile_cubin(*_: str, **__: Call) -> Compiled:
        together.wait(SECONDS)
        return compiled(7)

    monkeypatch.setattr(loading, "compile_cubin", compile_cubin)
    with ThreadPoolExecutor(2) as threads:
        begun = [threads.submit(load, "a", "sm_80", "f") for _ in range(2)]
        modules = [weakref.ref(one.result().function.module) for one in begun]
    del begun
    gc.collect()
    assert modules[0]() is not modules[1]()
    assert all(module() is not None for module in modules)


def test_an_error_is_raised_by_each_launch_that_needs_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def compile_cubin(*_: str, **__: Call) -> Compiled:
        raise CompileError("no such header")

    monkeypatch.setattr(loading, "compile_cubin", compile_cubin)
    kernel = PendingKernel("a", "sm_80", "f")
    for _ in range(2):
        with pytest.raises(CompileError, match="no such header"):
            _ = kernel.ptr


def test_what_is_compiled_is_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Module, "get_function", lambda self, name: SimpleNamespace(ptr=1))
    kernels = [PendingKernel(SOURCE.format(number), "sm_80", "f") for number in range(2)]
    assert [kernel.ptr for kernel in kernels] == [1, 1]
    assert len(list((tmp_path / "cache").glob("*.cubin"))) == 2


def test_calls_that_only_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """They end where they would launch; what they asked for is compiled when the context ends."""
    together = Barrier(3)

    def compile_cubin(source: str, target: str, *, begun: Call) -> Compiled:
        begun()
        together.wait(SECONDS)
        if source == "ccc":
            raise CompileError("no such header")
        return Compiled(Path(), b"9", {}, (), cached=source == "bb")

    monkeypatch.setattr(loading, "compile_cubin", compile_cubin)
    with compiling_only() as found:
        first, second = PendingKernel("a", "sm_80", "f"), PendingKernel("bb", "sm_80", "f")
        with pytest.raises(NotLaunchedError, match="f is being compiled"):
            _ = first.ptr
        with pytest.raises(NotLaunchedError, match="g is being compiled"):
            load("ccc", "sm_80", "g")
    assert (found.compiled, found.cached) == (1, 1)
    assert str(found).startswith("1 kernel compiled in ")
    assert str(found).endswith(" s, 1 from the cache")
    assert (first.ptr, second.ptr) == (9, 9)
    with pytest.raises(CompileError, match="no such header"):
        load("ccc", "sm_80", "g")


def test_what_is_loaded_is_launched_also_where_others_only_compile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loading, "compile_cubin", lambda *_, **__: compiled(7))
    kernel = PendingKernel("a", "sm_80", "f")
    assert kernel.ptr == 7
    with compiling_only() as found:
        assert kernel.ptr == 7
    assert (found.compiled, found.cached) == (0, 0)


def test_others_launch_where_one_only_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "compile_cubin", lambda *_, **__: compiled(7))
    with ThreadPoolExecutor(1) as others, compiling_only() as found:
        assert others.submit(lambda: PendingKernel("a", "sm_80", "f").ptr).result() == 7
        with pytest.raises(NotLaunchedError):
            _ = PendingKernel("b", "sm_80", "f").ptr
    assert (found.compiled, found.cached) == (1, 0)
