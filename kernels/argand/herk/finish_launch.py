"""Launches that finish a Hermitian result: the mirrored triangle, or the lower one gathered."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from argand.device import Device
from argand.herk.kernel_sources import (
    FINISH_ARGUMENTS,
    GATHER_THREADS,
    MIRROR_THREADS,
    SIDE,
    FinishName,
    finish_name,
    finish_source,
)
from argand.runtime.calls.layout import Layout
from argand.runtime.launch.kernel import BoundKernel, bound_kernel

_NONE = {
    "triangle_stride": 0, "triangle_stride_batch": 0,
    "c_stride": 0, "c_stride_batch": 0, "beta": 0.0, "first_row": 0,
}  # fmt: skip


@lru_cache(maxsize=256)
def mirror_launch(matrix: Layout, batch: int, dtype: str, device: Device) -> BoundKernel:
    """Return the launch that writes the upper triangles of ``matrix`` and makes diagonals real."""
    rows = -(-matrix.rows // SIDE)
    blocks = batch * (rows * (rows + 1) // 2)
    return _bound("mirror_tile", dtype, blocks, MIRROR_THREADS, device, _of(matrix))


@lru_cache(maxsize=256)
def gather_launch(
    matrix: Layout, first_row: int, triangle: Layout, c: Layout | None, beta: float, batch: int,
    dtype: str, device: Device,
) -> BoundKernel:  # fmt: skip
    """Return the launch that gathers lower triangles, adds beta C, and makes diagonals real.

    ``matrix`` has the rows from ``first_row`` on, ``triangle`` and ``c`` are layouts of one row
    each.
    """
    values = _of(matrix) | {
        "triangle_stride": triangle.column_stride, "triangle_stride_batch": triangle.batch_stride,
        "beta": beta, "first_row": first_row,
    }  # fmt: skip
    if c is not None:
        values |= {"c_stride": c.column_stride, "c_stride_batch": c.batch_stride}
    blocks = batch * matrix.rows
    return _bound("gather_row", dtype, blocks, GATHER_THREADS, device, values)


def _of(matrix: Layout) -> dict[str, Any]:
    return _NONE | {
        "n": matrix.rows, "stride_m": matrix.row_stride, "stride_n": matrix.column_stride,
        "stride_batch": matrix.batch_stride,
    }  # fmt: skip


def _bound(
    name: FinishName, dtype: str, blocks: int, threads: int, device: Device, values: dict[str, Any]
) -> BoundKernel:
    source, symbol = finish_source(name, dtype), finish_name(name, dtype)
    return bound_kernel(source, symbol, blocks, threads, FINISH_ARGUMENTS, device, values)
