"""Launches of the kernels that compose and apply the row exchanges of a panel."""

from __future__ import annotations

from functools import lru_cache

from argand.device import Device
from argand.runtime.arguments import Arguments, arguments_dtype
from argand.runtime.complex_types import ITEM
from argand.runtime.kernel import BoundKernel
from argand.runtime.loading import PendingKernel
from argand.solve.exchange_plan import (
    MOVE_ARGUMENTS,
    MOVE_KERNEL,
    MOVE_THREADS,
    ORDER_ARGUMENTS,
    ORDER_KERNEL,
    ORDER_THREADS,
    move_source,
    moved_columns,
    order_bytes,
    order_source,
)


@lru_cache(maxsize=256)
def order_launch(rows: int, columns: int, device: Device) -> tuple[BoundKernel, bool]:
    """Return the launch for a panel of these sizes, and whether it needs scratch memory."""
    shared, fits = order_bytes(rows, columns, device.require_arch())
    kernel = PendingKernel(order_source(), device.target, ORDER_KERNEL, shared)
    values = {"pivots": 0, "scratch": 0, "order": 0, "moves": 0, "columns": columns, "rows": rows}
    arguments = Arguments(arguments_dtype(ORDER_ARGUMENTS), values)
    return BoundKernel(kernel, 1, ORDER_THREADS, arguments, shared_bytes=shared), not fits


@lru_cache(maxsize=1024)
def move_launch(
    moves: int, first: int, last: int, columns: int, pitch: int, dtype: str, device: Device
) -> BoundKernel | None:
    """Return the launch that moves rows but for columns [first, last); None where they do not fit.

    There must be another column.
    """
    width = moved_columns(moves, dtype, device.require_arch())
    if not width:
        return None
    shared = moves * width * ITEM[dtype]
    kernel = PendingKernel(move_source(dtype), device.target, MOVE_KERNEL, shared)
    blocks = -(-first // width) + -(-(columns - last) // width)
    values = {
        "moves": 0, "rows": 0, "pitch": pitch, "count": moves, "first": first, "last": last,
        "columns": columns, "width_bits": width.bit_length() - 1,
    }  # fmt: skip
    arguments = Arguments(arguments_dtype(MOVE_ARGUMENTS), values)
    return BoundKernel(kernel, blocks, MOVE_THREADS, arguments, shared_bytes=shared)
