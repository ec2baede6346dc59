"""Small Hermitian systems on a GPU: operands as the kernel reads them, its launch, call cache."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import cupy
import numpy as np

from argand.device import Device, gpu
from argand.hermitian.plan import (
    ARGUMENTS,
    HermitianPlan,
    check_plan,
    kernel_name,
    kernel_source,
    plan_hermitian,
)
from argand.multiprocessor import LARGEST_GRID
from argand.runtime.calls.call_cache import CallCache, Key
from argand.runtime.calls.layout import clashes, device_of, one_stride
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.runtime.memory.workspace import call_memory
from argand.runtime.plans.plan_override import PlanOverride

PLAN_OVERRIDE: PlanOverride[HermitianPlan] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use(plan)`` every call takes this plan."""
CALLS = CallCache(PLAN_OVERRIDE, in_place=(1,))
_MAX_ELEMENTS = 1 << 31
"""The kernel counts the elements of one system's right-hand sides in 32 bits."""


def solve_hermitian(
    r: Any, b: Any, dtype: str, shape: tuple[int, ...], out: Any, info: Any, key: Key | None
) -> Any:
    """Return x for arrays on their GPU, whose shapes and types `argand.solve_hermitian` checked.

    ``shape`` is x's, and ``key`` that of the call cache. Raises ValueError for right-hand sides of
    2^31 elements of one system, PlanError for a plan override that is not legal, CompileError where
    NVRTC fails.

    Memory beside the operands: a copy of what is of another type, of r or b where a matrix is not
    contiguous or matrices have no one stride, and of x where that holds for ``out``, or where it
    overlaps an operand and is not b itself.
    """
    n, columns = r.shape[-1], 1 if b.ndim == 1 else b.shape[-1]
    if n * columns >= _MAX_ELEMENTS:
        raise ValueError(f"n times the right-hand sides must be below 2^31, got {n} x {columns}")
    leading = shape[: len(shape) - min(b.ndim, 2)]
    with device_of(r, b, out, info):
        matrices = _readable(r.astype(dtype, copy=False), leading)
        rhs = _readable((b[:, None] if b.ndim == 1 else b).astype(dtype, copy=False), leading)
        usable = out is not None and _writable(_matrices(out, b), matrices, rhs)
        target = out if usable else cupy.empty(shape, dtype)
        if target.size:
            run = _Launch(n, columns, dtype, matrices, rhs, gpu(cupy.cuda.Device().id))
            at_info = None if info is None else info.data.ptr
            run(matrices.data.ptr, rhs.data.ptr, at_info, target.data.ptr)
            as_given = matrices.data.ptr == r.data.ptr and rhs.data.ptr == b.data.ptr
            if as_given and (usable or out is None):
                CALLS.keep(key, run, (r, b, info), target, shape, dtype)
        elif info is not None:
            info.fill(0)
        if out is None or usable:
            return target
        out[...] = target
        return out


def _matrices(x: Any, b: Any) -> Any:
    return x[..., None] if b.ndim == 1 else x


class _Launch:
    """The launch of one form of operands, for any addresses."""

    def __init__(
        self, n: int, columns: int, dtype: str, matrices: Any, rhs: Any, device: Device
    ) -> None:
        plan = _plan(n, columns, dtype, device)
        systems = prod(matrices.shape[:-2])
        blocks = min(-(-systems // plan.groups), LARGEST_GRID)
        if plan.in_global:
            blocks = min(blocks, device.sm_count * plan.blocks)
        numbers = blocks * plan.groups * plan.packed * plan.in_global
        self._factors_bytes = numbers * np.dtype(dtype).itemsize
        self._name = kernel_name(plan, dtype)
        self._launch = _kernel_launch(plan, dtype, blocks, device)
        self._values = {
            "r_batch": _between(matrices), "b_batch": _between(rhs), "x_batch": n * columns,
            "systems": systems, "columns": columns,
        }  # fmt: skip

    def __call__(self, r: int, b: int, info: int | None, x: int) -> None:
        # Freed after the launch, it is reused in the stream's order.
        factors = call_memory(self._factors_bytes) if self._factors_bytes else None
        self._launch({
            "r": r, "b": b, "x": x, "info": info or 0,
            "factors": 0 if factors is None else factors.ptr, **self._values,
        })  # fmt: skip
        if kernel_trace.watching:
            kernel_trace.note(self._name)


def _plan(n: int, columns: int, dtype: str, device: Device) -> HermitianPlan:
    arch = device.require_arch()
    if not PLAN_OVERRIDE.active or PLAN_OVERRIDE.value is None:
        return plan_hermitian(n, columns, dtype, arch)
    check_plan(PLAN_OVERRIDE.value, dtype, arch)
    return PLAN_OVERRIDE.value


@lru_cache(maxsize=512)
def _kernel_launch(plan: HermitianPlan, dtype: str, blocks: int, device: Device) -> BoundKernel:
    return bound_kernel(
        kernel_source(plan, dtype), kernel_name(plan, dtype), blocks, plan.threads, ARGUMENTS,
        device, shared_bytes=plan.shared_bytes(dtype),
    )  # fmt: skip


def _readable(x: Any, leading: tuple[int, ...]) -> Any:
    """Return x over all leading axes; copied where its matrices do not lie as the kernel reads."""
    view = x if x.shape[:-2] == leading else cupy.broadcast_to(x, leading + x.shape[-2:])
    return view if _between(view) is not None else cupy.ascontiguousarray(view)


def _between(x: Any) -> int | None:
    """Return the elements from matrix to matrix; None where there is no such number.

    There is one for matrices that are contiguous, by rows, and evenly spaced.
    """
    rows, columns = x.shape[-2:]
    item = x.dtype.itemsize
    dense = (columns == 1 or x.strides[-1] == item) and (
        rows == 1 or x.strides[-2] == columns * item
    )
    stride = one_stride(x.shape[:-2], x.strides[:-2])
    if not dense or stride is None:
        return None
    return int(stride // item)


def _writable(x: Any, r: Any, b: Any) -> bool:
    """Return whether the kernel may write x, which has b's shape, while it reads r and b."""
    return bool(x.flags.c_contiguous and not cupy.may_share_memory(x, r) and not clashes(b, x))
