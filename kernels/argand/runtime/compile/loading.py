"""Kernels on a device: cubins are loaded, and those that one call needs are compiled together.

A call prepares all its launches before it starts the first. A launch that needs no more than a
kernel's name takes a `PendingKernel`, which another thread compiles, so that a first call takes as
long as its slowest kernel and not as long as all of them one after another.

Within `compiling_only` a call ends where it would launch, with its kernels on their way, so that
those of several calls are compiled together.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import BoundedSemaphore, Event, Lock, Thread
from typing import Any, NamedTuple

from argand.runtime.compile.compiler import Compiled, compile_cubin
from argand.runtime.compile.dependent_launch import waits_first

_DYNAMIC_SHARED_BYTES = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
_begun: dict[tuple[str, str], Future[Compiled] | None] = {}
"""Compilations that `compile_later` began, by source and target; None once it was loaded."""
_modules: list[Any] = []
"""All modules that were loaded."""
_lock = Lock()
_at_once = BoundedSemaphore(max(4, os.cpu_count() or 1))
"""Compilers that run at once: each takes a core and some hundred megabytes. One call needs no more
than four."""


class NotLaunchedError(RuntimeError):
    """A call within `compiling_only` needs a kernel that is being compiled."""


@dataclass
class Compilation:
    """Report of `compiling_only`: ``compiled`` kernels' sources, those ``cached``, and the time.

    ``failures`` are the errors of those that did not compile.
    """

    compiled: int = 0
    cached: int = 0
    seconds: float = 0.0
    failures: list[BaseException] = field(default_factory=list)

    def __str__(self) -> str:
        kernels = "kernel" if self.compiled == 1 else "kernels"
        return (
            f"{self.compiled} {kernels} compiled in {self.seconds:.1f} s, "
            f"{self.cached} from the cache"
        )


class _OnlyCompiles(threading.local):
    """Whether a thread is within `compiling_only`."""

    here = False


_only_compiles = _OnlyCompiles()


@contextmanager
def compiling_only() -> Iterator[Compilation]:
    """Have a call raise NotLaunchedError at a kernel that is not loaded yet, in this context.

    The kernels that it has asked for until then are compiled by other threads, which the end of the
    context waits for; it then says what was compiled. An error of the compiler is not raised here
    but by the next call that needs the kernel. It is never nested. Calls of other threads launch.
    """
    found, started, before = Compilation(), time.perf_counter(), set(_begun)
    _only_compiles.here = True
    try:
        yield found
    finally:
        _only_compiles.here = False
        with _lock:  # other threads may begin more
            mine = [one for key, one in _begun.items() if key not in before and one is not None]
        wait(mine)
        failures = [one.exception() for one in mine]
        found.failures = [error for error in failures if error is not None]
        compiled = [one.result() for one in mine if one.exception() is None]
        found.cached = sum(one.cached for one in compiled)
        found.compiled = len(compiled) - found.cached
        found.seconds = time.perf_counter() - started


class LoadedKernel(NamedTuple):
    """A kernel on one device: CuPy's `Function`, whose module stays loaded, and two of its traits.

    ``ptr`` is the function's address; ``waits`` says whether it waits for the kernel before
    (`runtime.compile.dependent_launch`).
    """

    function: Any
    ptr: int
    waits: bool


def load(source: str, target: str, kernel: str, shared_bytes: int = 0) -> LoadedKernel:
    """Load a kernel, ready to launch on CuPy's current device.

    Args:
        source: CUDA C++ that defines ``extern "C" __global__`` functions.
        target: the device's architecture, as `compile_cubin` takes it.
        kernel: the function's name.
        shared_bytes: the dynamic shared memory of its launches.

    Raises CompileError where it does not compile, and NotLaunchedError within `compiling_only`.
    """
    if _only_compiles.here:
        compile_later(source, target)
        raise NotLaunchedError(f"{kernel} is being compiled")
    import cupy

    return _load(source, target, kernel, shared_bytes, cupy.cuda.Device().id)


class PendingKernel:
    """A kernel as `load` takes it, which another thread compiles until its address is asked for."""

    def __init__(self, source: str, target: str, kernel: str, shared_bytes: int = 0) -> None:
        self._arguments = source, target, kernel, shared_bytes
        #: Whether it waits for the kernel before (`runtime.compile.dependent_launch`).
        self.waits = waits_first(source, target)
        self._loaded: LoadedKernel | None = None
        compile_later(source, target)

    @property
    def ptr(self) -> int:
        """The function's address on CuPy's current device.

        Waits for the compiler; raises CompileError where NVRTC is missing or reports an error.
        """
        if self._loaded is None:
            self._loaded = load(*self._arguments)
        return self._loaded.ptr


def compile_later(source: str, target: str) -> None:
    """Begin to compile a source in another thread; the first `load` of it waits for that.

    A source is begun once in a process: what was loaded is at hand, or in the cache.
    """
    with _lock:
        if (source, target) in _begun:
            return
        found: Future[Compiled] = Future()
        _begun[source, target] = found
    begun = Event()
    # No daemon: NVRTC must not be cut off while the interpreter ends.
    Thread(target=_compile, args=(source, target, found, begun), daemon=False).start()
    # What this thread does next, such as an import, may keep the interpreter for 30 ms.
    begun.wait()


def _compile(source: str, target: str, found: Future[Compiled], begun: Event) -> None:
    """Compile when there is room; ``begun`` is set when NVRTC runs, or no thread has to wait."""
    if not _at_once.acquire(blocking=False):
        begun.set()
        _at_once.acquire()
    try:
        found.set_result(compile_cubin(source, target, begun=begun.set))
    except BaseException as error:  # raised where the kernel is loaded
        found.set_exception(error)
    finally:
        _at_once.release()
        begun.set()


def compiled(source: str, target: str) -> Compiled:
    """Return a source's cubin and what it takes: another thread's, the cache's, or compile it.

    Raises CompileError where it does not compile, and NotLaunchedError within `compiling_only`.
    """
    if _only_compiles.here:
        compile_later(source, target)
        raise NotLaunchedError("a kernel is being compiled")
    with _lock:
        found = _begun.get((source, target))
        if found is not None:
            _begun[source, target] = None
    return compile_cubin(source, target) if found is None else found.result()


@cache
def _load(source: str, target: str, kernel: str, shared_bytes: int, device: int) -> LoadedKernel:
    import cupy

    function = _module(source, target, device).get_function(kernel)
    # More than 48 KB, static memory included, has to be asked for. Launches of one kernel may
    # differ in it, so what was asked for is never lowered, by another thread neither.
    driver = cupy.cuda.driver
    with _lock:
        if shared_bytes > driver.funcGetAttribute(_DYNAMIC_SHARED_BYTES, function.ptr):
            driver.funcSetAttribute(function.ptr, _DYNAMIC_SHARED_BYTES, shared_bytes)
    return LoadedKernel(function, int(function.ptr), waits_first(source, target))


@cache
def _module(source: str, target: str, device: int) -> Any:
    """Load a source's module on a device, for the rest of the process.

    A graph of the program's may hold its kernels, and CUDA does not tell when that is destroyed.
    """
    from cupy.cuda.function import Module

    module = Module()
    module.load(compiled(source, target).cubin)
    _modules.append(module)  # also of a thread whose module is not the one that the cache keeps
    return module
