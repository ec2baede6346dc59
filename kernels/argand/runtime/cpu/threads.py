"""Work of the CPU on all of its cores, for NumPy's loops, which leave the interpreter to others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import Lock
from typing import TypeVar

from argand.device import available_cores

_Item = TypeVar("_Item")
ONE_CORE, ONE_CORE_COMPLEX = 1 << 18, (1 << 16) - 1
"""Products of numbers, real and complex, up to which BLAS computes a matrix product on one core
(OpenBLAS)."""
SEVERAL_CORES = 1 << 24
"""Products of real numbers from which a matrix product is worth BLAS's threads: some 300 us on one
core. They take less time from a tenth of it on where nothing else runs, but beside other work they
wait for milliseconds."""
ONE_CORE_VECTOR, ONE_CORE_COMPLEX_VECTOR = 9_215, 4_095
"""Numbers of a matrix, real and complex, up to which BLAS multiplies it by a vector on one core
(OpenBLAS)."""
ONE_CORE_DOT = 10_000
"""Numbers up to which BLAS computes a dot product on one core (OpenBLAS)."""


def on_all_cores(work: Callable[[_Item], object], items: Iterable[_Item]) -> None:
    """Call ``work`` on each item, on a thread per core; an error of one is raised after all.

    The caller's thread is one of them. The others are kept from call to call, because to start one
    takes longer than a small item; where all of them are busy the caller works alone.
    """
    left = list(items)
    helpers = min(available_cores(), len(left)) - 1
    if helpers < 1:
        for item in left:
            work(item)
        return
    shared, lock = iter(left), Lock()
    errors: list[Exception] = []

    def take_turns() -> None:
        for item in _one_by_one(shared, lock):
            try:
                work(item)
            except Exception as error:
                errors.append(error)

    helping = [_pool(available_cores()).submit(take_turns) for _ in range(helpers)]
    take_turns()
    for helper in helping:
        if not helper.cancel():
            helper.result()
    if errors:
        raise errors[0]


def _one_by_one(shared: Iterator[_Item], lock: Lock) -> Iterator[_Item]:
    """Yield what is left of an iterator that several threads share."""
    while True:
        with lock:
            try:
                item = next(shared)
            except StopIteration:
                return
        yield item


@lru_cache(maxsize=1)
def _pool(cores: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores, thread_name_prefix="argand")


# A child of fork has none of its parent's threads.
os.register_at_fork(after_in_child=_pool.cache_clear)
