"""Complex products on a GPU: our tensor-core kernels, and cuBLAS for fp64 and fp32."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from argand import cuda_cublas, nvrtc
from argand.cuda_arrays import Batched, batched, place, result_place
from argand.device import gpu
from argand.gemm import GemmProblem
from argand.gemm_plan import (
    ARGUMENTS,
    SCAN_DEPTH,
    SCAN_LINES,
    GemmPlan,
    gemm_source,
    kernel_name,
    plan_gemm,
    scan_source,
)
from argand.precision import Precision

_LARGEST_GRID = 2**31 - 1
_SCAN_THREADS = 256


def gemm_algorithm(precision: Precision) -> str:
    """What `gemm` runs for a precision, for the record."""
    if precision.exact_operands:
        return cuda_cublas.algorithm(precision.name)
    products = "" if len(precision.products) == 1 else f"{len(precision.products)} products, "
    return f"mma.sync {precision.operand.name} 4M ({products}one kernel)"


def gemm(problem: GemmProblem, a: Any, b: Any, c: Any, out: Any) -> Any:
    """Solve a GemmProblem on the GPU that holds its arrays; shapes and ``out`` are checked.

    Raises PlanError where the architecture has no legal tile, CompileError where NVRTC fails.
    """
    if problem.precision.exact_operands:
        return cuda_cublas.gemm(problem, a, b, c, out, problem.precision.name)
    with place(a):
        a, b = (x.astype("complex64", copy=False) for x in (a, b))
        if c is not None:
            c = c.astype("complex64", copy=False)
        # C may be out: each of its elements is read by the thread that writes it, before it does.
        overlapping = [a, b] if c is out else [a, b, c]
        target = result_place(out, problem.shape, "complex64", overlapping)
        if target.size:
            _run(problem, a, b, c if problem.beta != 0 else None, target)
        if out is not None and target is not out:
            out[...] = target
            return out
        return target


def _run(problem: GemmProblem, a: Any, b: Any, c: Any, target: Any) -> None:
    """Launch the kernel; a batch larger than a grid in several parts."""
    left = _lines(a, problem.op_a != "N", problem.batch_shape)
    right = _lines(b, problem.op_b == "N", problem.batch_shape)
    place_ = batched(target, problem.batch_shape)
    addend = place_ if c is None else batched(c, problem.batch_shape)
    plan = _plan(problem, left, right)
    kernel = nvrtc.load(
        gemm_source(problem.precision, plan), gpu(cupy.cuda.Device().id).target,
        kernel_name(problem.precision, plan), plan.shared_bytes,
    )  # fmt: skip
    values = _values(problem, left, right, addend, place_)
    if problem.precision.scaled:
        values |= _largest(problem, left, right)
    tiles = -(-problem.m // plan.block_m) * -(-problem.n // plan.block_n)
    together = max(1, _LARGEST_GRID // tiles)
    for first in range(0, problem.batch, together):
        values["first_batch"] = first
        grid = tiles * min(together, problem.batch - first)
        kernel((grid,), (plan.threads,), _arguments(values), shared_mem=plan.shared_bytes)


def _lines(x: Any, transposed: bool, batch_shape: tuple[int, ...]) -> Batched:
    """Rows are the kernel's lines (rows of op(A), columns of op(B)), columns are k."""
    found = batched(x, batch_shape)
    return found.transposed if transposed else found


def _plan(problem: GemmProblem, left: Batched, right: Batched) -> GemmPlan:
    device = gpu(cupy.cuda.Device().id)
    return plan_gemm(
        problem.precision, device.require_arch(), cores=device.cores,
        batch=problem.batch, m=problem.m, n=problem.n, k=problem.k,
        a_k_fast=_k_fast(left), b_k_fast=_k_fast(right),
        vector=2 if _in_pairs(left) and _in_pairs(right) else 1,
    )  # fmt: skip


def _k_fast(x: Batched) -> bool:
    """Whether k (the columns) is the axis to copy along; an axis of length 1 never is."""
    if 1 in (x.rows, x.columns):
        return x.columns != 1
    return abs(x.column_stride) <= abs(x.row_stride)


def _in_pairs(x: Batched) -> bool:
    """Whether two neighbours along the contiguous axis can be read as one 16-byte word."""
    fast, slow, slow_length = (
        (x.column_stride, x.row_stride, x.rows) if _k_fast(x)
        else (x.row_stride, x.column_stride, x.columns)
    )  # fmt: skip
    even = (slow_length == 1 or slow % 2 == 0) and x.batch_stride % 2 == 0
    return bool(fast == 1 and even and x.array.data.ptr % 16 == 0)


def _values(
    problem: GemmProblem, left: Batched, right: Batched, c: Batched, out: Batched
) -> dict[str, Any]:
    """The kernel's arguments by name; C's are out's where there is no C, and are not read."""
    conjugated = [op == "C" for op in (problem.op_a, problem.op_b)]
    alpha, beta = np.complex64(problem.alpha), np.complex64(problem.beta)
    even = out.row_stride % 2 == 0 and out.batch_stride % 2 == 0
    return {
        "a": left.array, "b": right.array, "c": c.array, "out": out.array,
        "a_largest": None, "b_largest": None,
        "m": problem.m, "n": problem.n, "k": 0 if problem.alpha == 0 else problem.k,
        "a_line": left.row_stride, "a_k": left.column_stride, "a_batch": left.batch_stride,
        "b_line": right.row_stride, "b_k": right.column_stride, "b_batch": right.batch_stride,
        "c_row": c.row_stride, "c_column": c.column_stride, "c_batch": c.batch_stride,
        "out_row": out.row_stride, "out_column": out.column_stride, "out_batch": out.batch_stride,
        "a_largest_batch": 0, "b_largest_batch": 0, "first_batch": 0,
        "alpha_re": alpha.real, "alpha_im": alpha.imag,
        "beta_re": beta.real, "beta_im": beta.imag,
        "flip_b": conjugated[0] != conjugated[1], "flip_result": conjugated[0],
        "pairs": out.column_stride == 1 and even and out.array.data.ptr % 16 == 0,
    }  # fmt: skip


_SCALARS = {"int64": np.int64, "float": np.float32, "int": np.int32}


def _arguments(values: dict[str, Any]) -> tuple[Any, ...]:
    """In the kernel's order and types. A missing array is a null pointer."""
    return tuple(
        _SCALARS[kind](values[name]) if kind in _SCALARS
        else np.uint64(0 if values[name] is None else values[name].data.ptr)
        for kind, name in ARGUMENTS
    )  # fmt: skip


def _largest(problem: GemmProblem, left: Batched, right: Batched) -> dict[str, Any]:
    """Bits of the largest finite magnitude of each row of A and each column of B."""
    found: dict[str, Any] = {}
    for name, x in (("a_largest", left), ("b_largest", right)):
        found[name] = _scan(x, problem.batch)
        found[f"{name}_batch"] = 0 if x.batch_stride == 0 else x.rows
    return found


def _scan(x: Batched, batch: int) -> Any:
    batch = batch if x.batch_stride else 1
    largest = cupy.zeros((batch, x.rows), cupy.uint32)
    line_blocks, k_blocks = -(-x.rows // SCAN_LINES[_k_fast(x)]), -(-x.columns // SCAN_DEPTH)
    warps = batch * line_blocks * k_blocks
    if warps:
        kernel = nvrtc.load(
            scan_source(_k_fast(x)), gpu(cupy.cuda.Device().id).target, "largest_magnitudes_kernel"
        )
        numbers = (
            x.rows, x.columns, x.row_stride, x.column_stride, x.batch_stride,
            line_blocks, k_blocks, batch,
        )  # fmt: skip
        # x may be a broadcast view: only its first element's address counts.
        pointers = (np.uint64(x.array.data.ptr), np.uint64(largest.data.ptr))
        kernel(
            (-(-warps * 32 // _SCAN_THREADS),), (_SCAN_THREADS,),
            pointers + tuple(np.int64(number) for number in numbers),
        )  # fmt: skip
    return largest
