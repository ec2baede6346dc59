"""Launches of the Hermitian product of complex int8 in s32 (Hopper): planes, then the product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import cupy

from argand.device import Device
from argand.gemm.question import GemmSizes
from argand.herk.kernel_sources import (
    INT8_ARGUMENTS,
    INT8_BLOCK_K,
    INT8_HALF,
    INT8_SHARED,
    INT8_STAGES,
    INT8_THREADS,
    INT8_TILE,
    PACK_ROWS,
    PACK_THREADS,
    PLANE_ARGUMENTS,
    int8_name,
    int8_source,
    planes_name,
    planes_source,
)
from argand.herk.problem import Form
from argand.runtime.calls.layout import Layout, is_k_major
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.arguments import Address
from argand.runtime.launch.graph import LaunchSequence
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.runtime.launch.tensor_map import TensorMap, tensor_map
from argand.runtime.memory.workspace import call_memory

_VECTOR = 16
"""Bytes of a load of the kernel that packs."""
_X, _C, _OUT, _PLANES = map(Address, range(4))
"""Addresses of a call: the operand, C, the result, and workspace for both planes."""
NAME = (
    f"wgmma s8 {INT8_HALF}x{INT8_TILE}x{INT8_BLOCK_K} {INT8_STAGES} stages: "
    "lower triangle, exact in s32"
)
"""The launch's name in records."""


@dataclass(frozen=True)
class Int8Problem:
    """A call for operands at any address.

    ``x`` is the layout of op(A) without its conjugation: rows by k, of numbers of 2 bytes. ``c`` is
    None where beta is 0. ``c`` and ``out`` of a triangle are one row each.
    """

    x: Layout
    batch: int
    conjugate: bool
    alpha: float
    beta: float
    c: Layout | None
    out: Layout
    dtype: str
    form: Form


def int8_planes_bytes(rows: int, k: int) -> int:
    """Return the bytes of both planes of one product, the workspace of its launches."""
    return 2 * rows * _pitch(k)


def _pitch(k: int) -> int:
    return -(-k // INT8_BLOCK_K) * INT8_BLOCK_K


class Int8Launch:
    """The launches of one problem; ``nbytes`` is the workspace of a call: both planes."""

    def __init__(self, problem: Int8Problem, device: Device) -> None:
        x = problem.x
        self._pitch = _pitch(x.columns)
        self._rows, self._batch = x.rows, problem.batch
        self.nbytes = problem.batch * int8_planes_bytes(x.rows, x.columns)
        pack, product = self._pack(problem, device), self._product(problem, device)
        results = {"out": _OUT}
        if problem.c is not None:  # else it stays null
            results["c"] = _C
        self._launches = LaunchSequence(
            [pack, product],
            lambda addresses: [
                pack.argument_update({"x": _X, "planes": _PLANES}, (), addresses),
                product.argument_update(results, (_PLANES, _PLANES), addresses),
            ],
        )

    def __call__(self, x: int, c: int, out: int) -> None:
        """Launch on these addresses; c is not read where beta is 0."""
        if kernel_trace.watching:
            kernel_trace.note(NAME)
        # Freed after the launches, it is reused in the stream's order.
        memory = call_memory(self.nbytes)
        stream = cupy.cuda.get_current_stream().ptr
        self._launches((x, c, out, memory.ptr), stream)

    def _pack(self, problem: Int8Problem, device: Device) -> BoundKernel:
        """Return the launch that packs the operand in planes of real and of imaginary parts."""
        x = problem.x
        across = not is_k_major(x)
        strides = (x.row_stride, x.batch_stride)
        vectors = (
            x.column_stride == 1 and x.aligned >= _VECTOR
            and all(stride * x.item % _VECTOR == 0 for stride in strides)
        )  # fmt: skip
        row_blocks = -(-x.rows // PACK_ROWS)
        values = {
            "stride_row": x.row_stride, "stride_k": x.column_stride,
            "stride_batch": x.batch_stride, "rows": x.rows, "k": x.columns, "pitch": self._pitch,
            "row_blocks": row_blocks, "vectors": vectors,
        }  # fmt: skip
        blocks = problem.batch * row_blocks * (self._pitch // INT8_BLOCK_K)
        return bound_kernel(
            planes_source(across=across), planes_name(across=across), blocks, PACK_THREADS,
            PLANE_ARGUMENTS, device, values,
        )  # fmt: skip

    def _product(self, problem: Int8Problem, device: Device) -> BoundKernel:
        """Return the launch that multiplies the planes and stores the result."""
        out, c, n = problem.out, problem.c or problem.out, problem.x.rows
        tiles = GemmSizes(problem.batch, n, n, 0, triangle=True).tiles(INT8_TILE, INT8_TILE)
        values = {
            "c_stride_m": c.row_stride, "c_stride_n": c.column_stride,
            "c_stride_batch": c.batch_stride,
            "out_stride_m": out.row_stride, "out_stride_n": out.column_stride,
            "out_stride_batch": out.batch_stride,
            "alpha": problem.alpha, "beta": problem.beta,
            "n": n, "num_k_tiles": self._pitch // INT8_BLOCK_K,
            "tile_rows": -(-n // INT8_TILE), "tiles": tiles,
            "conjugate": problem.conjugate, "pairs": out.in_pairs(along_columns=True),
        }  # fmt: skip
        return bound_kernel(
            int8_source(problem.dtype, problem.form), int8_name(problem.dtype, problem.form),
            min(tiles, device.sm_count), INT8_THREADS, INT8_ARGUMENTS, device, values, INT8_SHARED,
            (self._map(INT8_HALF), self._map(INT8_TILE)),
        )  # fmt: skip

    def _map(self, box: int) -> Callable[[int], TensorMap]:
        def make(address: int) -> TensorMap:
            return tensor_map(
                address, 1, (self._pitch, self._rows, 2 * self._batch),
                (self._pitch, self._pitch * self._rows), (INT8_BLOCK_K, box, 1), INT8_BLOCK_K,
            )  # fmt: skip

        return make


@lru_cache(maxsize=256)
def launch_for(problem: Int8Problem, device: Device) -> Int8Launch:
    """Return the launches of a problem on a device, made once."""
    return Int8Launch(problem, device)
