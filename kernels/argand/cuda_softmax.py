"""Softmax on a GPU: launches the kernels of ``cuda/softmax.cuh``."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from argand import nvrtc
from argand.cuda_arrays import one_stride, place
from argand.device import gpu
from argand.softmax import SoftmaxProblem
from argand.softmax_plan import kernel_name, plan_softmax, softmax_source

_LARGEST_GRID = 2**31 - 1


def softmax(problem: SoftmaxProblem, x: Any, out: Any) -> Any:
    """Solve a SoftmaxProblem on the GPU that holds x; ``out`` is checked.

    Raises CompileError where NVRTC fails.
    """
    with place(x):
        dtype = np.dtype(problem.precision.real_output)
        x = x.astype(dtype, copy=False)
        if _row_stride(x) is None:
            x = cupy.ascontiguousarray(x)
        usable = out is not None and _row_stride(out) is not None and not _clashes(x, out)
        target = out if usable else cupy.empty(problem.shape, dtype)
        if target.size:
            _run(problem, x, target)
        if out is not None and target is not out:
            out[...] = target
            return out
        return target


def _row_stride(x: Any) -> int | None:
    """Values from row to row; None where columns are not contiguous or rows have no one stride."""
    item = x.dtype.itemsize
    if x.shape[-1] > 1 and x.strides[-1] != item:
        return None
    if x.data.ptr % item or any(stride % item for stride in x.strides):
        return None
    stride = one_stride(x.shape[:-1], x.strides[:-1])
    return None if stride is None else stride // item


def _clashes(x: Any, out: Any) -> bool:
    """Whether writing out would change rows of x not yet read: in place alone is safe."""
    repeats = any(s == 0 and n > 1 for n, s in zip(out.shape, out.strides, strict=True))
    same = out.data.ptr == x.data.ptr and out.strides == x.strides
    return bool(repeats or (not same and cupy.may_share_memory(x, out)))


def _run(problem: SoftmaxProblem, x: Any, target: Any) -> None:
    strides = (_row_stride(x) or 0, _row_stride(target) or 0)
    item = target.dtype.itemsize
    lengths = (problem.columns, *strides)
    aligned = all(length * item % 16 == 0 for length in lengths) and all(
        array.data.ptr % 16 == 0 for array in (x, target)
    )
    plan = plan_softmax(problem.columns, problem.precision, aligned=aligned)
    kernel = nvrtc.load(
        softmax_source(problem.precision, problem.log, plan),
        gpu(cupy.cuda.Device().id).target,
        kernel_name(problem.precision, problem.log, plan),
    )
    blocks = min(-(-problem.rows // plan.rows_a_block), _LARGEST_GRID)
    numbers = (problem.rows, problem.columns, *strides)
    pointers = tuple(np.uint64(array.data.ptr) for array in (x, target))
    kernel((blocks,), (plan.block_threads,), pointers + tuple(np.int64(n) for n in numbers))
