"""Parts of a batch of Hermitian products on the CPU, which stay in a core's cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from argand.device import available_cores
from argand.herk.cpu_lower import is_shared
from argand.herk.problem import HerkProblem
from argand.runtime.complex_types import ITEM
from argand.runtime.cpu.threads import on_all_cores

Array = npt.NDArray[Any]
_PART_BYTES = 1 << 22
"""Bytes of operands and products that are finished at a time, beside the conjugates of the
products: more leave the caches, and of fewer the steps of each part cost more than is saved."""


def at_a_time(problem: HerkProblem) -> int:
    """Return how many products are computed and finished at a time.

    Those that BLAS computes on one core each are shared out to all.
    """
    numbers = problem.n * (problem.n + problem.k)
    most = max(1, _PART_BYTES // (numbers * ITEM[problem.dtype]))
    shares = available_cores() if is_shared(problem) else 1
    parts = max(-(-problem.batch // most), shares)
    return -(-problem.batch // parts)


def in_parts(problem: HerkProblem, part: Callable[..., object], *arrays: Array) -> None:
    """Call ``part`` with some matrices of all arrays at a time."""
    batch, step, leading = problem.batch, at_a_time(problem), len(problem.batch_shape)
    if batch <= step:
        part(*arrays)
        return
    parts = [x.reshape(batch, *x.shape[leading:]) for x in arrays]

    def work(first: int) -> None:
        part(*(x[first : first + step] for x in parts))

    starts = range(0, batch, step)
    if is_shared(problem):
        on_all_cores(work, starts)
        return
    for first in starts:
        work(first)
