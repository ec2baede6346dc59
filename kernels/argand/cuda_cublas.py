"""Complex products by cuBLAS, with the compute type said in the call and not by the environment."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cupy.cuda import cublas

from argand.cuda_arrays import Batched, batched, place, result_place
from argand.gemm import GemmProblem
from argand.precision import Precision, get_precision

# cublas_api.h: cublasComputeType_t, cudaDataType_t, cublasOperation_t.
COMPUTE_TYPES = {"fp32": 68, "tf32": 77, "fp64": 70}
"""CUBLAS_COMPUTE_32F, _32F_FAST_TF32 and _64F by the precision that they give."""
_DATA_TYPES = {"complex64": 4, "complex128": 5}
_N, _T, _C = 0, 1, 2
_DEFAULT_ALGORITHM = -1


def cublas_precision(compute: str) -> Precision:
    """The precision that a compute type has: FAST_TF32 rounds operands to nearest, ties to even.

    Seen on an H200 with cuBLAS 13.1, also through torch: every one of 32768 ties went to even.
    """
    return get_precision(compute, "nearest_even")


def algorithm(precision: str) -> str:
    """What `gemm` runs, for the record."""
    mode = {"fp32": "cgemm 32F", "tf32": "cgemm 32F_FAST_TF32", "fp64": "zgemm 64F"}[precision]
    return f"cublas {mode}"


def gemm(problem: GemmProblem, a: Any, b: Any, c: Any, out: Any, compute: str) -> Any:
    """Solve a GemmProblem by cublasGemmStridedBatchedEx.

    Args:
        problem, a, b, c, out: as in `argand.gemm`, already checked; CuPy arrays.
        compute: a name of ``COMPUTE_TYPES``.
    """
    with place(a):
        dtype = "complex128" if compute == "fp64" else "complex64"
        a, b = (x.astype(dtype, copy=False) for x in (a, b))
        target = result_place(out, problem.shape, dtype, [a, b] if c is out else [a, b, c])
        if not _row_major(target):
            target = cupy.empty(problem.shape, dtype)
        beta = problem.beta
        if beta != 0 and c is not target:
            target[...] = c
        if 0 in problem.shape:
            return target if out is None else out
        if problem.k == 0 or problem.alpha == 0:
            target[...] = target * np.array(beta, dtype)[()] if beta != 0 else 0
        else:
            _launch(problem, a, b, target, compute)
        if out is not None and target is not out:
            out[...] = target
            return out
        return target


def _row_major(x: Any) -> bool:
    """Whether cuBLAS can write x: columns one after another, rows apart from each other."""
    columns, item = x.shape[-1], x.dtype.itemsize
    follows = columns == 1 or x.strides[-1] == item
    return bool(follows and (x.shape[-2] == 1 or x.strides[-2] >= max(1, columns) * item))


def _operand(x: Any, op: str, batch_shape: tuple[int, ...]) -> tuple[Batched, int, int]:
    """op(x) for a column-major library that is to see its transpose: array, flag, leading axis."""
    found = batched(x, batch_shape)
    seen = found if op == "N" else found.transposed
    if _leading(seen.row_stride, seen.column_stride, seen.rows, seen.columns):
        if op == "C":  # conjugated but, as the library sees it, not transposed: it has no such flag
            return _operand(x.conj(), "T", batch_shape)
        return seen, _N, seen.columns if seen.rows == 1 else seen.row_stride
    if _leading(seen.column_stride, seen.row_stride, seen.columns, seen.rows):
        lead = seen.rows if seen.columns == 1 else seen.column_stride
        return seen, _C if op == "C" else _T, lead
    return _operand(cupy.ascontiguousarray(x), op, batch_shape)


def _leading(slow: int, fast: int, slow_length: int, fast_length: int) -> bool:
    """Whether lines lie apart with their elements one after another."""
    return (fast == 1 or fast_length == 1) and (slow >= fast_length or slow_length == 1)


def _launch(problem: GemmProblem, a: Any, b: Any, target: Any, compute: str) -> None:
    left, flag_a, lead_a = _operand(a, problem.op_a, problem.batch_shape)
    right, flag_b, lead_b = _operand(b, problem.op_b, problem.batch_shape)
    place_ = batched(target, problem.batch_shape)
    lead_c = problem.n if problem.m == 1 else place_.row_stride
    scalars = np.array([problem.alpha, problem.beta], target.dtype)
    kind, item = _DATA_TYPES[str(target.dtype)], scalars.itemsize
    handle = cupy.cuda.device.get_cublas_handle()
    mode = cublas.getPointerMode(handle)
    cublas.setPointerMode(handle, cublas.CUBLAS_POINTER_MODE_HOST)
    try:
        # Row-major C = A B is column-major C^T = B^T A^T, so the operands change places.
        cublas.gemmStridedBatchedEx(
            handle, flag_b, flag_a, problem.n, problem.m, problem.k,
            scalars.ctypes.data,
            right.array.data.ptr, kind, lead_b, right.batch_stride,
            left.array.data.ptr, kind, lead_a, left.batch_stride,
            scalars.ctypes.data + item,
            place_.array.data.ptr, kind, lead_c, place_.batch_stride,
            problem.batch, COMPUTE_TYPES[compute], _DEFAULT_ALGORITHM,
        )  # fmt: skip
    finally:
        cublas.setPointerMode(handle, mode)
