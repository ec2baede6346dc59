"""The OpenBLAS of NumPy, or SciPy's, on one core for a while.

The wheels of NumPy and SciPy have an OpenBLAS each, whose threads spin for some 30 ms after a
product. On few cores those of one wait for the other's, and beside other programs threads of either
wait for milliseconds. A product that takes a core less time than that is better off alone.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from threading import RLock
from typing import Any, NamedTuple, TypeVar

_Found = TypeVar("_Found")
OPENBLAS_NAMES = ("scipy_openblas_{}", "scipy_openblas_{}64_", "openblas_{}", "openblas_{}64_")
"""Names of OpenBLAS's functions: in wheels of NumPy and SciPy, and as others build it."""
_OWN_THREADS = 1
"""Value of ``openblas_get_parallel`` of an OpenBLAS with threads of its own."""


class _Threads(NamedTuple):
    """Functions that return and set how many threads OpenBLAS takes for a call."""

    get: Callable[[], int]
    set: Callable[[int], None]


class OneCore:
    """Calls functions in which the OpenBLAS of a module takes one core.

    What other threads compute by it meanwhile may take one core too. Another BLAS than OpenBLAS
    with threads of its own stays as it is.
    """

    def __init__(self, module: str) -> None:
        self._module, self.calls = module, _Calls()
        os.register_at_fork(after_in_child=self._after_fork)

    @cached_property
    def threads(self) -> _Threads | None:
        """How the library's threads are counted, None where it has none of its own."""
        try:
            # PyDLL keeps the interpreter: to leave it and come back takes longer than these calls.
            library = ctypes.PyDLL(import_module(self._module).__file__)
        except (ImportError, OSError):
            return None
        for name in OPENBLAS_NAMES:
            try:
                parallel, get, put = (
                    library[name.format(what)]
                    for what in ("get_parallel", "get_num_threads", "set_num_threads")
                )
            except AttributeError:
                continue
            put.restype = None
            return _Threads(get, put) if parallel() == _OWN_THREADS else None
        return None

    def is_limited(self) -> bool:
        """Return whether calls change how many threads the library takes."""
        return self.threads is not None

    def __call__(self, function: Callable[..., _Found], *arguments: Any) -> _Found:
        """Return ``function(*arguments)``, in which the library takes one core."""
        return self.limit(function)(*arguments)

    def limit(self, function: Callable[..., _Found]) -> Callable[..., _Found]:
        """Return ``function`` with one core for the library, to be made once for short calls."""
        threads = self.threads
        if threads is None:
            return function

        def limited(*arguments: Any, **options: Any) -> _Found:
            call = object()
            try:
                self.calls.begin(call, threads)
                return function(*arguments, **options)
            finally:
                try:
                    self.calls.end(call, threads)
                except BaseException:  # Ctrl-C, before it was done
                    self.calls.end(call, threads)
                    raise

        return limited

    def _after_fork(self) -> None:
        """Forget the calls of the parent's other threads, which a child of fork does not have."""
        if self.calls.calls and self.threads is not None:
            self.threads.set(self.calls.threads)
        self.calls = _Calls()


class _Calls:
    """The calls that want one core, and the threads that were set before the first of them.

    A handler of a signal may make such calls within `begin` and `end`, or raise KeyboardInterrupt
    there. So a call is among them from after the threads are read until after they are set again,
    and `end` may come twice, or where `begin` added nothing.
    """

    def __init__(self) -> None:
        self.lock, self.threads = RLock(), 1
        self.calls: set[object] = set()

    def begin(self, call: object, threads: _Threads) -> None:
        with self.lock:
            if self.calls:
                self.calls.add(call)
                return
            self.threads = threads.get()
            self.calls.add(call)
            threads.set(1)

    def end(self, call: object, threads: _Threads) -> None:
        with self.lock:
            if call not in self.calls:  # as in a child of fork within a call
                return
            if len(self.calls) == 1:
                threads.set(self.threads)
            self.calls.discard(call)


scipy_on_one_core = OneCore("scipy.linalg.cython_blas")
numpy_on_one_core = OneCore("numpy._core._multiarray_umath")
