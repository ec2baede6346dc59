"""Parts of a batch of Hermitian products on the CPU, which stay in a core's cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.device import available_cores
from argand.herk.cpu_lower import is_shared
from argand.herk.problem import HerkProblem
from argand.runtime.threads import on_all_cores

Array = npt.NDArray[Any]
_PART_BYTES = 1 << 20
"""Bytes of operands and products that stay in a cache of a core until they are finished, beside the
conjugates of the products."""
_MATCHED_BYTES = 1 << 21
"""Bytes up to which, and twice as many where k is at most half of the rows, products of which rows
need no mirror take no longer at once: the steps of each part cost more than its cache saves."""


def at_a_time(problem: HerkProblem) -> int:
    """Return how many products are computed and finished at a time.

    Those that BLAS computes on one core each are shared out to all.
    """
    most = max(1, _PART_BYTES // _bytes_of_one(problem))
    shares = available_cores() if is_shared(problem) else 1
    parts = max(-(-problem.batch // most), shares)
    return -(-problem.batch // parts)


def is_one_part(problem: HerkProblem, matched: int) -> bool:
    """Return whether products are computed at once, of which so many rows need no mirror."""
    most = _MATCHED_BYTES * (2 if 2 * problem.k <= problem.n else 1)
    few = problem.batch * _bytes_of_one(problem) <= most and not is_shared(problem)
    return (matched > 0 and few) or problem.batch <= at_a_time(problem)


def _bytes_of_one(problem: HerkProblem) -> int:
    """Return the bytes of a matrix and its product."""
    return problem.n * (problem.n + problem.k) * np.dtype(problem.dtype).itemsize


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
