"""SciPy's OpenBLAS on one core for a while.

The wheels of NumPy and SciPy have an OpenBLAS each, whose threads spin for some 30 ms after a
product. On few cores those of one wait for the other's, and beside other programs threads of either
wait for milliseconds. A product that takes a core less time than that is better off alone.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import lru_cache
from threading import RLock
from typing import Any, NamedTuple, TypeVar

_Found = TypeVar("_Found")
OPENBLAS_NAMES = ("scipy_openblas_{}", "scipy_openblas_{}64_", "openblas_{}", "openblas_{}64_")
"""Names of OpenBLAS's functions: in wheels of NumPy and SciPy, and as others build it."""
_OWN_THREADS = 1
"""Value of ``openblas_get_parallel`` of an OpenBLAS with threads of its own."""


class _Threads(NamedTuple):
    """Return and set how many threads OpenBLAS takes for a call."""

    get: Callable[[], int]
    set: Callable[[int], None]


def is_limited() -> bool:
    """Return whether `on_one_core` changes how many threads SciPy's BLAS takes."""
    return _threads() is not None


def on_one_core(function: Callable[..., _Found], *arguments: Any) -> _Found:
    """Return ``function(*arguments)``, in which SciPy's OpenBLAS takes one core.

    What other threads compute by SciPy's BLAS meanwhile may take one core too. Another BLAS than
    OpenBLAS with threads of its own stays as it is.
    """
    threads = _threads()
    if threads is None:
        return function(*arguments)
    call = object()
    try:
        _CALLS.begin(call, threads)
        return function(*arguments)
    finally:
        try:
            _CALLS.end(call, threads)
        except BaseException:  # Ctrl-C, before it was done
            _CALLS.end(call, threads)
            raise


class _Calls:
    """The calls that want one core now, and the threads that were set before the first.

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

    def after_fork(self) -> None:
        """Forget the calls of the parent's other threads, which a child of fork does not have."""
        threads = _threads() if self.calls else None
        if threads is not None:
            threads.set(self.threads)
        self.__init__()  # type: ignore[misc]


_CALLS = _Calls()
os.register_at_fork(after_in_child=_CALLS.after_fork)


@lru_cache(maxsize=1)
def _threads() -> _Threads | None:
    """Return how the threads of SciPy's OpenBLAS are counted, None where it has none of its own."""
    from scipy.linalg import cython_blas

    # PyDLL keeps the interpreter: to leave it and come back takes longer than these functions.
    library = ctypes.PyDLL(cython_blas.__file__)
    for name in OPENBLAS_NAMES:
        try:
            parallel, get, put = (
                library[name.format(what)]
                for what in ("get_parallel", "get_num_threads", "set_num_threads")
            )
        except AttributeError:
            continue
        put.argtypes, put.restype = [ctypes.c_int], None
        return _Threads(get, put) if parallel() == _OWN_THREADS else None
    return None
