"""cuBLAS's cherk and zherk, which CuPy does not bind: the lower triangle of row-major results."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_int, c_int64, c_void_p
from typing import Any

import cupy
import numpy as np

from argand.herk.problem import HerkProblem
from argand.runtime.cublas import CublasHandle, cublas_handle, workspace_bytes
from argand.runtime.layout import Batched

# cublas_api.h: cublasFillMode_t, cublasOperation_t.
_UPPER = 1
_N, _C = 0, 2
_NAMES = {"complex64": "cublasCherk_v2_64", "complex128": "cublasZherk_v2_64"}
_REALS = {"complex64": np.float32, "complex128": np.float64}


def algorithm(precision: str) -> str:
    """Return the routine of fp32 or fp64, for records."""
    return f"cublas {'cherk' if precision == 'fp32' else 'zherk'}"


def _routine(handle: CublasHandle, dtype: str) -> Callable[..., None]:
    """Return the function of a type's numbers. Raises RuntimeError without the library."""
    return handle.routine(
        _NAMES[dtype], c_void_p, c_int, c_int, c_int64, c_int64, c_void_p, c_void_p, c_int64,
        c_void_p, c_void_p, c_int64,
    )  # fmt: skip


def lower_triangle(problem: HerkProblem, a: Any, out: Batched) -> None:
    """Compute the lower triangles of alpha op(A) op(A)^H + beta C, where ``out`` holds C.

    A column-major library reads A^T and writes C^T, the upper triangle of which is the lower one
    of C. The call is one a product.

    Args:
        problem: whose op is N or C.
        a: (batch, rows, columns), row-major and contiguous.
        out: of contiguous rows that do not overlap.
    """
    scalars = np.array([problem.alpha, problem.beta], _REALS[problem.dtype])
    alpha, beta = scalars.ctypes.data, scalars.ctypes.data + scalars.itemsize
    item = a.dtype.itemsize
    lead = problem.n if problem.n == 1 else out.row_stride
    stream = cupy.cuda.get_current_stream().ptr
    handle = cublas_handle(cupy.cuda.Device().id)
    call = _routine(handle, problem.dtype)
    workspace = handle.call_memory(stream, workspace_bytes())
    for index in range(problem.batch):
        handle.call(
            call, stream, workspace,
            _UPPER, _C if problem.op == "N" else _N, problem.n, problem.k, alpha,
            a.data.ptr + index * a.strides[0], max(1, a.shape[-1]), beta,
            out.array.data.ptr + index * out.batch_stride * item, max(1, lead),
        )  # fmt: skip
