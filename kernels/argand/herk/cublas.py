"""Hermitian products by cuBLAS, in row-major results.

They are those of its cherk and zherk, which CuPy does not bind, or full products.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_int, c_int64, c_void_p
from dataclasses import replace
from typing import Any

import cupy
import numpy as np

from argand.gemm.cublas import CublasLaunch, launch_into
from argand.herk.problem import FULL_PRODUCT, HerkProblem
from argand.runtime.calls.layout import Batched
from argand.runtime.launch import kernel_trace
from argand.runtime.libraries.cublas import CublasHandle, cublas_handle, workspace_bytes

# cublas_api.h: cublasFillMode_t, cublasOperation_t.
_UPPER = 1
_N, _C = 0, 2
_NAMES = {"complex64": "cublasCherk_v2_64", "complex128": "cublasZherk_v2_64"}
_REALS = {"complex64": np.float32, "complex128": np.float64}
_FULL_ROWS = 1200
"""Rows of a matrix up to which full products of a batch, in one call, and their mirrors take less
time than herk, a call a matrix (fp32, an H200)."""


def takes_full_product(problem: HerkProblem) -> bool:
    """Return whether full products take less time than lower triangles, a call each."""
    return problem.n <= _FULL_ROWS


class FullLaunch:
    """The launch of full products, whose names `argand.launched` lists."""

    mirrors = False

    def __init__(self, launch: CublasLaunch) -> None:
        self._launch = launch

    def __call__(self, a: int, b: int, c: int, out: int) -> None:
        """Launch on these addresses; the library adds to ``out`` in place, and c is not read."""
        if kernel_trace.watching:
            kernel_trace.note(FULL_PRODUCT)
        self._launch(a, b, c, out)


def full_product(problem: HerkProblem, a: Any, out: Any) -> tuple[FullLaunch, bool]:
    """Compute alpha op(A) op(A)^H + beta C in a row-major ``out``, which holds C.

    Returns the launch, and whether it took the operand, of the result's type, where it is.
    """
    if kernel_trace.watching:
        kernel_trace.note(FULL_PRODUCT)
    product = replace(problem.product, triangle=False, mirror=False)
    launch, in_place = launch_into(product, a, a, out, product.precision.name)
    return FullLaunch(launch), in_place


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
        out: an array of contiguous rows that do not overlap.
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
