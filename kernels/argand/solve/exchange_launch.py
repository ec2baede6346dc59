"""Launches of the kernels that compose and apply the row exchanges of a panel."""

from __future__ import annotations

from functools import lru_cache

from argand.device import Device
from argand.runtime.complex_types import ITEM
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
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
    values = {"columns": columns, "rows": rows}
    launch = bound_kernel(
        order_source(), ORDER_KERNEL, 1, ORDER_THREADS, ORDER_ARGUMENTS, device, values, shared
    )
    return launch, not fits


@lru_cache(maxsize=1024)
def move_launch(
    moves: int, first: int, last: int, columns: int, pitch: int, dtype: str, device: Device
) -> BoundKernel | None:
    """Return the launch that moves rows except in columns [first, last); None if they do not fit.

    There must be another column.
    """
    width = moved_columns(moves, dtype, device.require_arch())
    if not width:
        return None
    shared = moves * width * ITEM[dtype]
    blocks = -(-first // width) + -(-(columns - last) // width)
    values = {
        "pitch": pitch, "count": moves, "first": first, "last": last,
        "columns": columns, "width_bits": width.bit_length() - 1,
    }  # fmt: skip
    return bound_kernel(
        move_source(dtype), MOVE_KERNEL, blocks, MOVE_THREADS, MOVE_ARGUMENTS, device, values,
        shared,
    )  # fmt: skip
