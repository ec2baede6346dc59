"""Packed operands on a GPU: planes on Hopper, elsewhere a copy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import cupy

from argand.device import gpu
from argand.gemm.families import Family
from argand.gemm.operands import Op, Side
from argand.gemm.pack.launch import PackLaunch, PackSource, Planes
from argand.gemm.pairs import Pairs
from argand.gemm.pairs_launch import as_halves, words
from argand.precision import Precision
from argand.runtime.calls.layout import Batched, batched, device_of
from argand.runtime.memory.workspace import zeroed_workspace
from argand.runtime.plan import WGMMA_TARGET

_SMALL = 512
"""Largest rows and k of a packed operand that keeps a copy, since mma.sync may be the faster."""


def on_hopper() -> bool:
    """Return whether the current device is a Hopper card."""
    return gpu(cupy.cuda.Device().id).target == WGMMA_TARGET


@dataclass(frozen=True, eq=False)
class PackedOperand:
    """A packed operand on a GPU: planes on Hopper, elsewhere a copy and its op.

    Planes of small matrices have a copy beside them, because mma.sync may be faster.
    """

    planes: Planes | None
    copy: Any
    op: Op
    batch_shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        if self.planes is None:
            return int(self.copy.nbytes)
        beside = 0 if self.planes.copy is None else self.planes.copy.nbytes
        return int(self.planes.memory.nbytes + beside)

    @property
    def memory(self) -> Any:
        """The array that holds it."""
        return self.copy if self.planes is None else self.planes.memory

    @property
    def device(self) -> Any:
        """The GPU that holds it."""
        return self.memory.device


def pack(
    x: Any, op: Op, precision: Precision, side: Side, kernels: Family | None = None
) -> PackedOperand:
    """Return x packed, in memory of its own; arguments as in `argand.pack`."""
    batch_shape = tuple(x.shape[:-2])
    with device_of(x):
        no_elements = 0 in x.shape  # no kernel would have a block to launch
        if precision.exact_operands or no_elements or not on_hopper() or kernels == "mma.sync":
            kept = x.to_complex64() if isinstance(x, Pairs) else x
            return PackedOperand(None, kept.astype(precision.output, copy=True), op, batch_shape)
        x = as_halves(x, precision.operand.name) if isinstance(x, Pairs) else x
        view = rows_by_k(x, op, side, batch_shape)
        source = PackSource(view.layout, half=isinstance(x, Pairs), conjugate=op == "C")
        device = gpu(cupy.cuda.Device().id)
        launch = PackLaunch(precision, [source], math.prod(batch_shape), device)
        memory = cupy.empty(launch.nbytes, cupy.uint8)
        stream = cupy.cuda.get_current_stream().ptr
        zeros = zeroed_workspace(launch.counters, stream)
        absmax = cupy.empty(launch.absmax_bytes, cupy.uint8)
        launch([view.array.data.ptr], memory.data.ptr, zeros=zeros, absmax=absmax.data.ptr)
        copy = None
        if kernels is None and not source.half and max(view.rows, view.columns) <= _SMALL:
            turned = x.swapaxes(-1, -2) if (op == "N") == (side == "b") else x
            turned = turned.astype("complex64", order="C")
            copy = cupy.conj(turned, out=turned) if op == "C" else turned
        planes = replace(launch.planes(memory.data.ptr)[0], memory=memory, copy=copy)
        return PackedOperand(planes, None, "N", batch_shape)


def rows_by_k(x: Any, op: Op, side: Side, batch_shape: tuple[int, ...]) -> Batched:
    """Return an operand as the kernels index it: rows of op(A), or columns of op(B), by k."""
    array = words(x) if isinstance(x, Pairs) else x.astype("complex64", copy=False)
    found = batched(array, batch_shape)
    return found.transposed if (op == "N") == (side == "b") else found
