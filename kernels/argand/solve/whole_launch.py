"""Launches of the kernels around cuSOLVER's factorization of a whole matrix."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from argand.device import Device
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.solve.whole_plan import (
    COPY,
    MEASURE,
    PRODUCT,
    UPPER,
    WholeKernel,
    copy_blocks,
    product_plan,
    state_numbers,
    upper_columns,
    upper_grid,
)


class WholeLaunches(NamedTuple):
    """Launches that solve a factored system and measure x.

    Attributes:
        substitute: substitutes back.
        multiply: finds A x and the row sums of |A|, in parts.
        measure: finds the backward error of x, and writes x as the call returns it.
        parts: complex128 numbers that ``multiply`` writes.
    """

    substitute: BoundKernel
    multiply: BoundKernel
    measure: BoundKernel
    parts: int


@lru_cache(maxsize=256)
def copy_launch(
    n: int, columns: int, dtype: str, working: str, by_rows: bool, device: Device
) -> BoundKernel:
    """Return the launch that copies A and b beside each other and sets the state to 0.

    Arguments are those of `whole_launches`.
    """
    return bound_kernel(
        COPY.source(dtype, working), COPY.name, copy_blocks(n, columns), COPY.threads, COPY.fields,
        device,
        {"n": n, "columns": columns, "by_rows": by_rows,
         "state_numbers": state_numbers(n, columns)},
    )  # fmt: skip


@lru_cache(maxsize=256)
def whole_launches(
    n: int, columns: int, dtype: str, working: str, by_rows: bool, device: Device
) -> WholeLaunches:
    """Return the launches for A (n, n), by rows or by columns, and b (n, columns) of a type.

    ``working`` is the type of the factors; n and columns are at least 1.
    """
    plan, (blocks, _) = product_plan(n, columns, device.sm_count), upper_grid(n, columns)

    def bound(kernel: WholeKernel, source: str, blocks: int, **more: int) -> BoundKernel:
        return bound_kernel(
            source, kernel.name, blocks, kernel.threads, kernel.fields, device,
            {"n": n, "columns": columns, **more},
        )  # fmt: skip

    substitute = bound(UPPER, UPPER.source(working, columns=upper_columns(columns)), blocks)
    multiply = bound(
        PRODUCT, PRODUCT.source(dtype, working, columns=plan.columns), plan.blocks,
        splits=plan.splits, width=plan.width, by_rows=by_rows,
    )  # fmt: skip
    measure = bound(MEASURE, MEASURE.source(dtype, working), columns + 1, splits=plan.splits)
    return WholeLaunches(substitute, multiply, measure, plan.splits * (columns + 1) * n)
