"""Complex products by cuBLAS, whose compute type the call names, not the environment."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_int, c_longlong, c_void_p
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from typing import Any

import cupy
import numpy as np

from argand.frameworks.streams import cupy_stream
from argand.gemm.gpu_calls import CALLS
from argand.gemm.problem import GemmProblem
from argand.precision import Precision, get_precision
from argand.runtime.calls.call_cache import Key
from argand.runtime.calls.kept_call import Chosen, StreamRun
from argand.runtime.calls.layout import Batched, batched, device_of, result_array
from argand.runtime.driver.current_stream import OnStream
from argand.runtime.launch.captured_graph import CapturedCalls
from argand.runtime.libraries.cublas import Workspace, cublas_handle, workspace_bytes

# cublas_api.h: cublasComputeType_t, cudaDataType_t, cublasOperation_t.
COMPUTE_TYPES = {"fp32": 68, "tf32": 77, "fp64": 70}
"""CUBLAS_COMPUTE_32F, _32F_FAST_TF32 and _64F by the precision that they give."""
_DATA_TYPES = {"complex64": 4, "complex128": 5}
_N, _T, _C = 0, 1, 2
_DEFAULT_ALGORITHM = -1
_MAX_STREAMS = 8
"""Streams and threads in which a form has graphs."""
_ROUTINE = "cublasGemmStridedBatchedEx"
_ARGUMENT_TYPES = (
    c_void_p, c_int, c_int, c_int, c_int, c_int, c_void_p, c_void_p, c_int, c_int, c_longlong,
    c_void_p, c_int, c_int, c_longlong, c_void_p, c_void_p, c_int, c_int, c_longlong, c_int, c_int,
    c_int,
)  # fmt: skip
_current_stream = cupy.cuda.get_current_stream


def cublas_precision(compute: str) -> Precision:
    """Return the precision of a compute type: FAST_TF32 rounds operands to nearest, ties to even.

    On an H200 every one of 32768 ties went to even with cuBLAS 13.1, also through torch.
    """
    return get_precision(compute, "nearest_even")


def algorithm(precision: str) -> str:
    """Return the cuBLAS routine and compute type that `gemm` runs, for records."""
    mode = {"fp32": "cgemm 32F", "tf32": "cgemm 32F_FAST_TF32", "fp64": "zgemm 64F"}[precision]
    return f"cublas {mode}"


def gemm(
    problem: GemmProblem,
    a: Any,
    b: Any,
    c: Any,
    out: Any,
    compute: str,
    key: Key | None = None,
) -> Any:
    """Solve a GemmProblem by cublasGemmStridedBatchedEx.

    Args:
        problem, a, b, c, out: as in `argand.gemm`, already checked; CuPy arrays.
        compute: a name of ``COMPUTE_TYPES``.
        key: under which the call cache is to keep calls of this form.
    """
    with device_of(a, b, c, out):
        dtype = "complex128" if compute == "fp64" else "complex64"
        given = (a, b, c, out)
        a, b = (x.astype(dtype, copy=False) for x in (a, b))
        target = result_array(out, problem.shape, dtype, [a, b] if c is out else [a, b, c])
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
            launch, in_place = launch_into(problem, a, b, target, compute)
            as_given = in_place and a is given[0] and b is given[1]
            # The library adds to the target in place, so another C was copied into it above.
            if key is not None and as_given and beta == 0 and (out is None or target is out):
                chosen = Chosen(algorithm(compute), library_bytes=launch.nbytes)
                CALLS.keep(
                    key, launch.run(), given[:3], given[3], problem.shape, dtype, chosen=chosen
                )
        if out is not None and target is not out:
            out[...] = target
            return out
        return target


def launch_into(
    problem: GemmProblem, a: Any, b: Any, target: Any, compute: str
) -> tuple[CublasLaunch, bool]:
    """Compute a product of arrays of the result's type, which ``target`` is, row-major.

    Returns the launch, and whether it took the arrays where they are.
    """
    left = _operand(a, problem.op_a, problem.batch_shape)
    right = _operand(b, problem.op_b, problem.batch_shape)
    launch = CublasLaunch(problem, left, right, target, compute)
    at = left.view.array.data.ptr, right.view.array.data.ptr
    launch(*at, target.data.ptr, target.data.ptr)
    return launch, at == (a.data.ptr, b.data.ptr)


def bound(problem: GemmProblem, a: Any, b: Any, out: Any, compute: str) -> Callable[[], None]:
    """Return a call of the product of these arrays into ``out``, row-major, without any checks.

    It measures the library alone. Raises ValueError where an array would have to be copied.
    """
    left = _operand(a, problem.op_a, problem.batch_shape)
    right = _operand(b, problem.op_b, problem.batch_shape)
    at = a.data.ptr, b.data.ptr, out.data.ptr, out.data.ptr
    if (left.view.array.data.ptr, right.view.array.data.ptr) != at[:2] or not _row_major(out):
        raise ValueError("cuBLAS takes only arrays whose rows or columns are contiguous")
    launch = CublasLaunch(problem, left, right, out, compute)
    return lambda: launch(*at)


def _row_major(x: Any) -> bool:
    """Return whether cuBLAS can write x: contiguous rows and products that do not overlap."""
    columns, item = x.shape[-1], x.dtype.itemsize
    follows = columns == 1 or x.strides[-1] == item
    rises = all(stride >= 0 for stride in x.strides[:-2])
    return bool(follows and rises and (x.shape[-2] == 1 or x.strides[-2] >= max(1, columns) * item))


@dataclass(frozen=True)
class _Operand:
    """op(x) for a column-major library that reads its transpose: its flag and leading dimension."""

    view: Batched
    flag: int
    lead: int


def _operand(x: Any, op: str, batch_shape: tuple[int, ...]) -> _Operand:
    """Return an operand as the library reads it; copied where it cannot read it."""
    found = batched(x, batch_shape)
    if found.batch_stride < 0:  # some of cuBLAS's kernels refuse it
        return _operand(cupy.ascontiguousarray(x), op, batch_shape)
    seen = found if op == "N" else found.transposed
    if _leading(seen.row_stride, seen.column_stride, seen.rows, seen.columns):
        if op == "C":  # conjugated but, as the library sees it, not transposed: it has no such flag
            return _operand(x.conj(), "T", batch_shape)
        return _Operand(seen, _N, seen.columns if seen.rows == 1 else seen.row_stride)
    if _leading(seen.column_stride, seen.row_stride, seen.columns, seen.rows):
        lead = seen.rows if seen.columns == 1 else seen.column_stride
        return _Operand(seen, _C if op == "C" else _T, lead)
    return _operand(cupy.ascontiguousarray(x), op, batch_shape)


def _leading(slow: int, fast: int, slow_length: int, fast_length: int) -> bool:
    """Return whether one axis is contiguous and the other has a leading dimension that fits it."""
    return (fast == 1 or fast_length == 1) and (slow >= fast_length or slow_length == 1)


class CublasLaunch:
    """One product by cuBLAS for operands of these layouts, at any address; beta scales ``out``.

    The library takes the host longer to choose a kernel than a small product takes the card, so
    calls at addresses that come again are graphs.
    """

    def __init__(
        self, problem: GemmProblem, left: _Operand, right: _Operand, target: Any, compute: str
    ) -> None:
        #: Bytes of workspace of a call.
        self.nbytes = workspace_bytes()
        view = batched(target, problem.batch_shape)
        self._scalars = np.array([problem.alpha, problem.beta], target.dtype)
        alpha, kind = int(self._scalars.ctypes.data), _DATA_TYPES[str(target.dtype)]
        beta = alpha + self._scalars.itemsize
        lead = problem.n if problem.m == 1 else view.row_stride
        # Row-major C = A B is column-major C^T = B^T A^T, so the operands change places. Each list
        # ends where an address comes.
        self._arguments = (
            (right.flag, left.flag, problem.n, problem.m, problem.k, alpha),
            (kind, right.lead, right.view.batch_stride),
            (kind, left.lead, left.view.batch_stride, beta),
            (kind, lead, view.batch_stride, problem.batch, COMPUTE_TYPES[compute],
             _DEFAULT_ALGORITHM),
        )  # fmt: skip
        self._device = cupy.cuda.Device().id
        self._handle = cublas_handle(self._device)
        self._routine = self._handle.routine(_ROUTINE, *_ARGUMENT_TYPES)
        self._captured: dict[tuple[int, int], CapturedCalls] = {}

    def __call__(self, a: int, b: int, _c: int, out: int) -> None:
        """Launch on the current stream."""
        self.start((a, b, out), _current_stream(self._device).ptr)

    def run(self) -> StreamRun:
        """Return a function that launches as a call does, on the current or on a given stream."""
        device, start = self._device, self.start

        def run(a: int, b: int, _: int | None, out: int, stream: int | None = None) -> None:
            start((a, b, out), _current_stream(device).ptr if stream is None else stream)

        return StreamRun(run, start, lambda a, b, c, out: (a, b, out))

    def start(self, addresses: tuple[int, ...], stream: int) -> None:
        """Launch on a stream at the addresses of a, b and the result."""
        captured = self._captured.get((stream, get_ident()))
        if captured is not None and captured.again(addresses, stream):
            return
        if _current_stream(self._device).ptr == stream:
            self._launch(addresses, stream)
        else:
            with OnStream(cupy_stream(stream)):  # in whose order memory is reused
                self._launch(addresses, stream)

    def _launch(self, addresses: tuple[int, ...], stream: int) -> None:
        """Launch on the current stream: a graph, which may be made, or the library's call."""
        key = stream, get_ident()
        captured = self._captured.get(key)
        if captured is None:
            captured = self._graphs_on(key)
        if not captured.launch(addresses, stream):
            self._queue(self._handle.call_memory(stream, self.nbytes), *addresses)

    def _graphs_on(self, key: tuple[int, int]) -> CapturedCalls:
        """Return the graphs of a stream and a thread."""
        if len(self._captured) >= _MAX_STREAMS:
            self._captured.clear()
        workspace = partial(self._handle.workspace, key[0], self.nbytes)
        found = self._captured[key] = CapturedCalls(
            lambda *addresses: self._queue(workspace(), *addresses), before=workspace
        )
        return found

    def _queue(self, workspace: Workspace | None, a: int, b: int, out: int) -> None:
        """Queue the product on the current stream, which may be captured."""
        first, of_b, of_a, of_out = self._arguments
        stream = _current_stream(self._device).ptr
        arguments = *first, b, *of_b, a, *of_a, out, *of_out
        self._handle.call(self._routine, stream, workspace, *arguments)
