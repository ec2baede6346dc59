"""Checks of products by other processes, which take as long as to measure the next products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any

from argand import Precision
from argand.device import available_cores

from benchmarks.gemm.product_check import ProductCheck, Taken
from benchmarks.peers import Candidate
from workflow.accuracy import Accuracy

_MAX_PROCESSES = 6
"""Processes that check; the others are left to the one that measures."""
Results = list[tuple[Taken, Precision, str]]


class DeferredCheck:
    """Takes the sample of each result of a case; all are assessed together, later.

    ``first`` assesses a result that is seen to be wrong at once, and returns None of others.
    """

    def __init__(
        self, check: ProductCheck, first: Callable[[Any, Candidate], Accuracy | None] | None = None
    ) -> None:
        self._check, self._first = check, first
        self._results: Results = []

    def __call__(self, result: Any, candidate: Candidate) -> Accuracy | int:
        """Take the sample of a result; return its place among those of `submit`."""
        if self._first is not None and (wrong := self._first(result, candidate)):
            return wrong
        self._results.append((self._check.taken(result), candidate.precision, candidate.output))
        return len(self._results) - 1

    def submit(self) -> Future[Sequence[Accuracy]]:
        """Let another process assess what was taken."""
        return _pool().submit(assessed, self._check, self._results)


def assessed(check: ProductCheck, results: Results) -> list[Accuracy]:
    """Assess results by what was taken of them."""
    return [check.assess_output(*result) for result in results]


@cache
def _pool() -> ProcessPoolExecutor:
    # A fork of a process that has a context cannot use the device.
    count = max(1, min(_MAX_PROCESSES, available_cores() - 2))
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))
