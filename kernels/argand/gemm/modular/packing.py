"""Packed operands of exact products on a GPU: planes of residues and exponents, made once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import cupy

from argand.device import gpu
from argand.gemm.base_address import BaseAddress
from argand.gemm.modular.operand_launch import OperandLaunch, planes_bytes
from argand.gemm.modular.problem import ModularProblem
from argand.gemm.modular.product_plan import COLUMN_BLOCK
from argand.gemm.operands import Op, Side
from argand.gemm.workspace import aligned
from argand.runtime.calls.layout import Layout, batched, device_of
from argand.runtime.complex_types import ITEM
from argand.runtime.launch.arguments import Address
from argand.runtime.launch.graph import LaunchSequence


@dataclass(frozen=True, eq=False)
class PackedPlanes:
    """An operand as the kernels of exact products multiply it.

    Attributes:
        memory: planes of all products, then the exponents of their lines.
        layout: lines by k, as for an array; its strides are not those of planes.
        dtype: the type of the operand, complex64 or complex128.
        batch_shape: its leading axes.
        form: what launches depend on besides, for the call cache.
        product_bytes: bytes of a product's planes.
    """

    memory: Any
    layout: Layout
    dtype: str
    batch_shape: tuple[int, ...]
    form: tuple[Any, ...]
    product_bytes: int

    @property
    def planes(self) -> int:
        """The address, which launches take."""
        return int(self.memory.data.ptr)

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return int(self.memory.nbytes)


def pack(x: Any, op: Op, count: int, side: Side) -> PackedPlanes:
    """Return x, complex and on a GPU, packed for ``count`` moduli; arguments as in `argand.pack`.

    Raises ValueError where k is too long for the moduli.
    """
    batch_shape = tuple(x.shape[:-2])
    with device_of(x):
        view = batched(x, batch_shape)
        view = view.transposed if (op == "N") == (side == "b") else view
        layout, batch = view.layout, prod(batch_shape)
        device = gpu(cupy.cuda.Device().id)
        dtype, batches = str(x.dtype), batch if layout.batch_stride else 1
        kept = _kept_layout(layout.rows, layout.columns, batches, dtype)
        form = (dtype, batch_shape, batches, device.index)
        if 0 in x.shape:
            return PackedPlanes(cupy.empty(1, cupy.uint8), kept, dtype, batch_shape, form, 0)
        problem = ModularProblem(
            dtype=dtype, count=count, batch=batch, a=layout, b=layout, c=None, out=layout,
            conjugate_a=op == "C", conjugate_b=op == "C", alpha=1, beta=0,
        )  # fmt: skip
        stored = layout.rows if side == "a" else -(-layout.rows // COLUMN_BLOCK) * COLUMN_BLOCK
        sizes = [planes_bytes(count, stored, problem.pitch, batches)]

        def reserve(nbytes: int) -> Address:
            found = Address(BaseAddress.WORKSPACE, sum(sizes))
            sizes.append(aligned(nbytes))
            return found

        operand = OperandLaunch(
            problem, layout, BaseAddress.ROWS, device, reserve, permuted=side == "b"
        )
        planes = Address(BaseAddress.WORKSPACE)
        ordered = [*operand.norms(), operand.encode(0, batch, 0, layout.rows, stored, planes)]
        memory = cupy.empty(sum(sizes), cupy.uint8)
        launches = LaunchSequence(
            [launch.kernel for launch in ordered],
            lambda addresses: [
                launch.kernel.argument_update(launch.members, launch.maps, addresses)
                for launch in ordered
            ],
        )
        addresses = (int(view.array.data.ptr), 0, 0, 0, int(memory.data.ptr))
        launches(addresses, cupy.cuda.get_current_stream().ptr)
        nbytes = 2 * count * stored * problem.pitch
        return PackedPlanes(memory, kept, dtype, batch_shape, form, nbytes)


def for_batch(x: PackedPlanes, batch_shape: tuple[int, ...]) -> PackedPlanes:
    """Return x itself, or where its products repeat over these leading axes a copy of them all."""
    stride, rows = x.layout.batch_stride, x.layout.rows
    if stride == 0 or x.batch_shape == batch_shape:
        return x
    own, needed = prod(x.batch_shape), prod(batch_shape)
    begin = aligned(own * x.product_bytes)
    parts = [
        cupy.broadcast_to(part.reshape(*x.batch_shape, -1), (*batch_shape, part.size // own))
        for part in (
            x.memory[: own * x.product_bytes], x.memory[begin : begin + 4 * own * rows],
        )
    ]  # fmt: skip
    at = aligned(needed * x.product_bytes)
    memory = cupy.empty(at + 4 * needed * rows, cupy.uint8)
    for start, part in zip((0, at), parts, strict=True):
        memory[start : start + part.size] = part.ravel()
    return replace(x, memory=memory, batch_shape=batch_shape)


def _kept_layout(rows: int, columns: int, batch: int, dtype: str) -> Layout:
    """Return the layout of lines that stand one after the other; none repeat in a batch of one."""
    stride = rows * columns if batch > 1 else 0
    return Layout(rows, columns, columns, 1, stride, ITEM[dtype], 32)
