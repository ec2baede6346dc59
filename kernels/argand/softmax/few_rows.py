"""The plan of rows that a GPU holds all at once, whose time is latency. No GPU, no CuPy.

Such a call takes 2 to 5 us, in which each thread waits for its accesses, reduces and stores once
(docs/experiments/2026-11-30-softmax-of-few-rows.md). Accesses that cross no row's edge need no
masks, and many threads of few values wait for less. What they take of memory's rate is not missed.
"""

from __future__ import annotations

from argand.multiprocessor import WARP
from argand.softmax.candidates import SoftmaxCandidate

_COLUMNS = range(257, 8193)
"""Rows that were measured: shorter ones have such accesses whatever their number."""
_MULTIPROCESSOR_BYTES = 48 << 10
"""Most bytes of x for each multiprocessor. Where there are more, memory's rate bounds a call."""
_WARP_COLUMNS = 512
"""Longest rows of a warp, whose lanes need no barrier to share a sum."""
_THREADS = (512, 256, 192, 128, 96, 64)
_LEAST_VALUES = 6
"""Least values of a thread."""
_MULTIPROCESSOR_THREADS = 1024
"""Most threads of a multiprocessor's rows, half of those that it holds."""


def are_few_rows(rows: int, columns: int, element_bytes: int, sm_count: int) -> bool:
    """Return whether a GPU holds all rows of this length at once."""
    held = sm_count * _MULTIPROCESSOR_BYTES
    return columns in _COLUMNS and rows * columns * element_bytes <= held


def few_rows_candidate(
    rows: int, columns: int, element_bytes: int, sm_count: int
) -> SoftmaxCandidate | None:
    """Return the most threads that each hold `_LEAST_VALUES`; None where rows are not few."""
    if not are_few_rows(rows, columns, element_bytes, sm_count):
        return None
    if columns > _WARP_COLUMNS:
        each = -(-rows // sm_count)
        for threads in _THREADS:
            if columns >= threads * _LEAST_VALUES and each * threads <= _MULTIPROCESSOR_THREADS:
                return SoftmaxCandidate(threads, 1)
    return SoftmaxCandidate(WARP, 1)
