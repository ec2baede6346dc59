"""The plan of rows that a GPU holds all at once, whose time is latency. No GPU, no CuPy.

Such a call takes 2 to 5 us, in which each thread waits for its accesses, reduces and stores once
(docs/experiments/2026-11-30-softmax-of-few-rows.md). Accesses that cross no row's edge need no
masks, and many threads of few values wait for less. What they take of memory's rate is not missed.
"""

from __future__ import annotations

from argand.multiprocessor import WARP
from argand.softmax.candidates import SoftmaxCandidate
from argand.softmax.formats import ELEMENT_BYTES
from argand.softmax.plan import SoftmaxForm

_COLUMNS = range(257, 8193)
"""Rows that were measured: shorter ones have such accesses whatever their number."""
_MULTIPROCESSOR_BYTES = 48 << 10
"""Most bytes of x, or of results that are wider, for each multiprocessor. Where there are more,
memory's rate bounds a call."""
_WARP_COLUMNS = 512
"""Longest rows of a warp, whose lanes need no barrier to share a sum."""
_THREADS = (512, 256, 192, 128, 96, 64)
_MIN_VALUES, _MIN_ACCESSES = 6, 2
"""Fewest values and accesses of a thread."""
_MULTIPROCESSOR_THREADS = 1024
"""Most threads of a multiprocessor's rows, half of those that it holds."""


def are_few_rows(
    rows: int, columns: int, input_kind: str, written_kind: str, sm_count: int
) -> bool:
    """Return whether a GPU holds all rows of this length at once."""
    each = max(ELEMENT_BYTES[input_kind], ELEMENT_BYTES[written_kind])
    return columns in _COLUMNS and rows * columns * each <= sm_count * _MULTIPROCESSOR_BYTES


def few_rows_candidate(
    form: SoftmaxForm, rows: int, columns: int, sm_count: int
) -> SoftmaxCandidate | None:
    """Return the most threads that have enough to do each; None where rows are not few."""
    if not are_few_rows(rows, columns, form.input, form.written, sm_count):
        return None
    if columns > _WARP_COLUMNS:
        least, each = max(_MIN_VALUES, _MIN_ACCESSES * form.vector), -(-rows // sm_count)
        for threads in _THREADS:
            if columns >= threads * least and each * threads <= _MULTIPROCESSOR_THREADS:
                return SoftmaxCandidate(threads, 1)
    return SoftmaxCandidate(WARP, 1)
