"""Layouts of operands and results that TMA can address."""

from __future__ import annotations

from argand.runtime.calls.layout import Layout, is_k_major
from argand.runtime.launch.tensor_map import ALIGNMENT


def tma_addressable(x: Layout) -> bool:
    """Return whether TMA can address a matrix: one axis contiguous, the other strides aligned."""
    fast, slow, _ = _lines(x)
    aligned = all(stride * x.item % ALIGNMENT == 0 for stride in (slow, x.batch_stride))
    return fast == 1 and slow > 0 and x.batch_stride >= 0 and aligned and x.aligned >= ALIGNMENT


def has_odd_pitch(x: Layout) -> bool:
    """Return whether TMA can address a matrix of complex64 by its even and by its odd lines.

    One axis is contiguous and the other stride odd. Every second line then begins on a multiple of
    16 bytes, and so does every second product (`has_odd_batches`).
    """
    fast, slow, lines = _lines(x)
    aligned = x.batch_stride >= 0 and x.aligned >= ALIGNMENT
    return fast == 1 and slow > 0 and slow % 2 == 1 and lines > 1 and x.item == 8 and aligned


def _lines(x: Layout) -> tuple[int, int, int]:
    """Return the strides along and between the lines of a matrix, and the number of lines."""
    if is_k_major(x):
        return x.column_stride, x.row_stride, x.rows
    return x.row_stride, x.column_stride, x.columns


def has_odd_batches(x: Layout) -> bool:
    """Return whether matrices of odd pitch lie an odd number of complex64 apart as well."""
    return has_odd_pitch(x) and x.batch_stride % 2 == 1
