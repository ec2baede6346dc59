"""Launches of the kernels around cuSOLVER's factorization of a whole matrix."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from argand.device import Device
from argand.runtime.kernel import BoundKernel, bound_kernel
from argand.solve.whole_plan import (
    COPY_ARGUMENTS,
    COPY_KERNEL,
    COPY_THREADS,
    MEASURE_ARGUMENTS,
    MEASURE_KERNEL,
    MEASURE_THREADS,
    PRODUCT_ARGUMENTS,
    PRODUCT_KERNEL,
    PRODUCT_THREADS,
    UPPER_ARGUMENTS,
    UPPER_KERNEL,
    UPPER_THREADS,
    copy_blocks,
    copy_source,
    measure_source,
    product_plan,
    product_source,
    upper_columns,
    upper_grid,
    upper_source,
)


class WholeLaunches(NamedTuple):
    """Launches for systems of one form.

    Attributes:
        copy: copies A and b beside each other and sets the state to 0.
        substitute: substitutes back.
        multiply: finds A x and the row sums of |A|, in parts.
        measure: finds the backward error of x, and writes x as the call returns it.
        parts: complex128 numbers that ``multiply`` writes.
        state: uint32 numbers of the state: that of ``measure``, then those of ``substitute``.
    """

    copy: BoundKernel
    substitute: BoundKernel
    multiply: BoundKernel
    measure: BoundKernel
    parts: int
    state: int


@lru_cache(maxsize=256)
def whole_launches(
    n: int, columns: int, dtype: str, working: str, by_rows: bool, device: Device
) -> WholeLaunches:
    """Return the launches for A (n, n), by rows or by columns, and b (n, columns) of a type.

    ``working`` is the type of the factors; n and columns are at least 1.
    """
    plan, (blocks, state) = product_plan(n, columns, device.sm_count), upper_grid(n, columns)
    sizes = {"n": n, "columns": columns}
    copy = bound_kernel(
        copy_source(dtype, working), COPY_KERNEL, copy_blocks(n, columns), COPY_THREADS,
        COPY_ARGUMENTS, device, {**sizes, "by_rows": by_rows, "state_numbers": 1 + state},
    )  # fmt: skip
    substitute = bound_kernel(
        upper_source(working, upper_columns(columns)), UPPER_KERNEL, blocks, UPPER_THREADS,
        UPPER_ARGUMENTS, device, sizes,
    )  # fmt: skip
    multiply = bound_kernel(
        product_source(dtype, working, plan.columns), PRODUCT_KERNEL, plan.blocks,
        PRODUCT_THREADS, PRODUCT_ARGUMENTS, device,
        {**sizes, "splits": plan.splits, "width": plan.width, "by_rows": by_rows},
    )  # fmt: skip
    measure = bound_kernel(
        measure_source(dtype, working), MEASURE_KERNEL, columns + 1, MEASURE_THREADS,
        MEASURE_ARGUMENTS, device, {**sizes, "splits": plan.splits},
    )  # fmt: skip
    parts = plan.splits * (columns + 1) * n
    return WholeLaunches(copy, substitute, multiply, measure, parts, 1 + state)
