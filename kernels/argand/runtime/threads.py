"""Work of the CPU on all of its cores, for NumPy's loops, which leave the interpreter to others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argand.device import available_cores

_Item = TypeVar("_Item")


def on_all_cores(work: Callable[[_Item], object], items: Iterable[_Item]) -> None:
    """Call ``work`` on each item, on a thread a core; an error of one is raised after all."""
    left = list(items)
    workers = min(available_cores(), len(left)) if len(left) > 1 else 1
    if workers < 2:
        for item in left:
            work(item)
        return
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(work, left):
            pass
