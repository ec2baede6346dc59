"""A product by the Hopper kernel with its packing and its split-K reduction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cupy

from argand.device import Device
from argand.gemm.base_address import BaseAddress
from argand.gemm.choice import GemmChoice
from argand.gemm.choice_workspace import partials_capacity
from argand.gemm.pack.launch import PackLaunch, PackSource, Planes
from argand.gemm.problem import GemmProblem
from argand.gemm.product_form import OperandForm, ProductForm
from argand.gemm.sm90.launch import WgmmaLaunch
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.problem import WgmmaLayouts, WgmmaProblem
from argand.gemm.sm90.scheduler import CallWorkspace, OwnPlanes, TileDivision
from argand.gemm.sm90.splitk_launch import ReduceLaunch
from argand.gemm.workspace import aligned, slices_pitch
from argand.precision import Precision
from argand.runtime.calls.layout import Layout
from argand.runtime.launch.arguments import Address
from argand.runtime.launch.graph import LaunchSequence
from argand.runtime.launch.kernel import ArgumentUpdate
from argand.runtime.memory.workspace import call_memory, zeroed_workspace


class WgmmaCall:
    """The launches of a choice of the wgmma family; ``allowed`` is that of `Question`."""

    def __init__(
        self, form: ProductForm, choice: GemmChoice, device: Device, allowed: int | None = None
    ) -> None:
        assert choice.wgmma is not None
        plan, problem, precision = choice.wgmma, form.problem, form.problem.precision
        self._device, self._swapped = device.index, choice.swapped
        rows, columns, num_rows, num_columns = form.a, form.b, problem.m, problem.n
        addend, out = form.addend, form.out
        if choice.swapped:
            rows, columns, num_rows, num_columns = columns, rows, num_columns, num_rows
            addend, out = addend.transposed, out.transposed
        planar = plan.storage == "planar"
        # conj(X) Y = conj(X conj(Y)): the kernel cannot conjugate an interleaved row operand.
        conjugate_result = not planar and rows.conjugated
        self._scaled = precision.scaled and not plan.prescaled
        self._pack = self._packing(problem, plan, rows, columns, conjugate_result, device)
        packed = 0 if self._pack is None else self._pack.nbytes
        slices = choice.split_k_slices
        target, alpha, beta = out, problem.alpha, problem.beta
        self._reduce: ReduceLaunch | None = None
        if slices > 1:
            pitch = slices_pitch(num_columns)
            self._reduce = ReduceLaunch(
                slices, problem.batch, pitch, addend, out, alpha, beta, device
            )
            target = Layout(num_rows, pitch, pitch, 1, num_rows * pitch, 8, 32)
            alpha, beta, addend = 1, 0, target
        capacity = partials_capacity(choice, form.question(allowed))
        self._multiply = WgmmaLaunch(
            precision, plan,
            WgmmaProblem(
                num_rows, num_columns, problem.k, problem.batch,
                x_batched=rows.batched, y_batched=columns.batched,
                alpha=complex(alpha), beta=complex(beta), conjugate_result=conjugate_result,
                split_k_slices=slices, mirror=problem.mirror,
            ),
            WgmmaLayouts(
                None if planar else rows.layout, columns.layout if plan.fused_pack else None,
                addend, target,
            ),
            CallWorkspace(packed, capacity, self._own_planes(plan, precision)), device,
            pack_conjugate=(rows if plan.conjugate_y else columns).conjugated != conjugate_result,
            begins_early=self._pack is not None and not self._pack.absmax_before,
        )  # fmt: skip
        self._counters = max(self._multiply.counters, self._pack.counters if self._pack else 0)
        self._reserve(packed, problem.batch, ((num_rows, rows), (num_columns, columns)), slices)
        self._launches = self._in_order()

    def _reserve(
        self, packed: int, batch: int, operands: tuple[tuple[int, OperandForm], ...], slices: int
    ) -> None:
        """Lay out the workspace of a call, one allocation, after the ``packed`` bytes of planes.

        ``operands`` are the lines and the form of the row operand and of the column operand.
        """
        (num_rows, _), (num_columns, _) = operands
        self._ones_offset = packed + self._multiply.nbytes
        self._slices_offset = aligned(self._ones_offset)
        if slices > 1:
            results = math.prod((slices, batch, num_rows, slices_pitch(num_columns)))
            self._ones_offset = self._slices_offset + 8 * results
        self._absmax_offset = self._ones_offset
        if self._scaled:
            self._absmax_offset += 8 * sum(
                (batch if x.batched else 1) * lines for lines, x in operands if x.layout is None
            )
        #: Bytes of workspace: planes, partial tiles or split-K slices, the factors of planes that
        #: may have none, and what the absmax kernel finds.
        self.nbytes = self._absmax_offset + (self._pack.absmax_bytes if self._pack else 0)

    def _packing(
        self, problem: GemmProblem, plan: WgmmaPlan, rows: OperandForm, columns: OperandForm,
        conjugate_columns: bool, device: Device,
    ) -> PackLaunch | None:  # fmt: skip
        """Return the launch that packs what comes unpacked, columns perhaps conjugated."""
        planar = plan.storage == "planar"
        self._packs_rows = (
            planar and rows.layout is not None and not (plan.fused_pack and plan.conjugate_y)
        )
        #: Whether the row operand and the column operand share their planes.
        self._one_operand = plan.conjugate_y
        apart = not (plan.fused_pack or self._one_operand)
        self._packs_columns = columns.layout is not None and apart
        exchanges_k = plan.odd_batches and not plan.k_major
        packed_here = [(rows, False)] * self._packs_rows
        packed_here += [(columns, conjugate_columns)] * self._packs_columns
        sources = [
            PackSource(x.layout, x.half, x.conjugated != conjugate, exchanges_k)
            for x, conjugate in packed_here
            if x.layout is not None
        ]
        return PackLaunch(problem.precision, sources, problem.batch, device) if sources else None

    def _in_order(self) -> LaunchSequence:
        """Return the launches one after another."""
        pack, own = self._pack, self._pack.planes(0) if self._pack else []
        #: Offsets of the planes that are packed here, and of their descale factors.
        self._planes_offsets = [(planes.address, planes.descale) for planes in own]
        # Two of the product where partial tiles lie over planes, else one.
        kernels = list(self._multiply.kernels)
        if pack is not None and not pack.absmax_before:
            kernels.insert(0, pack.kernel)
        if self._reduce is not None:
            kernels.append(self._reduce.kernel)
        return LaunchSequence(kernels, self._updates)

    @property
    def plan(self) -> WgmmaPlan:
        """The plan, with what the launch added to it."""
        return self._multiply.plan

    @property
    def division(self) -> TileDivision:
        """The division of tiles among blocks."""
        return self._multiply.division

    def _own_planes(self, plan: WgmmaPlan, precision: Precision) -> tuple[OwnPlanes, ...]:
        """Return the planes that a call packs before it multiplies."""
        if self._pack is None or plan.triangle:
            return ()  # the last tiles of a triangle read the first columns
        rows = [True] * self._packs_rows + [False] * self._packs_columns
        return tuple(
            OwnPlanes(
                x.address,
                (plan.block_m if is_rows else plan.block_n) * x.pitch * precision.planar_bytes // 2,
                x.nbytes // x.batches if x.batches > 1 else 0,
                is_rows,
            )
            for x, is_rows in zip(self._pack.planes(0), rows, strict=True)
        )

    def __call__(self, a: int | Planes, b: int | Planes, c: int, out: int) -> None:
        """Launch on these addresses or planes; c is not read where beta is 0."""
        rows, columns = (b, a) if self._swapped else (a, b)
        stream = cupy.cuda.get_current_stream().ptr
        # One allocation for all; freed after the launches, it is reused in the stream's order.
        memory = call_memory(self.nbytes) if self.nbytes else None
        at = 0 if memory is None else memory.ptr
        zeros = zeroed_workspace(self._counters, stream, self._device) if self._counters else 0
        x_descale = y_descale = 0
        free = self._ones_offset
        if isinstance(rows, Planes):
            x_descale = self._descale(rows, memory, free)
            free, rows = free + 8 * rows.batches * rows.rows, rows.address
        if isinstance(columns, Planes):
            y_descale, columns = self._descale(columns, memory, free), columns.address
        if self._pack is not None and self._pack.absmax_before:
            sources = (rows,) * self._packs_rows + (columns,) * self._packs_columns
            self._pack(sources, at, zeros=zeros, absmax=at + self._absmax_offset)
        self._launches((rows, columns, c, out, at, zeros, x_descale, y_descale), stream)

    def _updates(self, addresses: Sequence[int]) -> list[ArgumentUpdate]:
        """Return how the launches' arguments follow from a call's addresses, by `BaseAddress`."""
        found = []
        rows, columns = Address(BaseAddress.ROWS), Address(BaseAddress.COLUMNS)
        x_descale, y_descale = Address(BaseAddress.X_DESCALE), Address(BaseAddress.Y_DESCALE)
        c, out = Address(BaseAddress.C), Address(BaseAddress.OUT)
        if self._pack is not None:
            sources = [BaseAddress.ROWS] * self._packs_rows + [
                BaseAddress.COLUMNS
            ] * self._packs_columns
            if not self._pack.absmax_before:
                members = self._pack.addresses(sources)
                found.append(self._pack.kernel.argument_update(members, (), addresses))
            packed = [
                [Address(BaseAddress.WORKSPACE, x) for x in of] for of in self._planes_offsets
            ]
            if self._packs_rows:
                rows, x_descale = packed[0]
            if self._packs_columns or self._one_operand:
                columns, y_descale = packed[-1]
        slices = Address(BaseAddress.WORKSPACE, self._slices_offset)
        if self._reduce is not None:
            found.append(
                self._reduce.kernel.argument_update(self._reduce.addresses(slices), (), addresses)
            )
            out = slices
        given, maps = self._multiply.addresses(
            rows, columns, c, out, (x_descale, y_descale) if self._scaled else None
        )
        return [
            *found,
            *(x.argument_update(given, maps, addresses) for x in self._multiply.kernels),
        ]

    def _descale(self, x: Planes, memory: Any, offset: int) -> int:
        """Return the address of the descale factors of planes.

        Planes that were packed from 16-bit numbers have none; beside scaled planes their scales are
        1, at an offset of the call's memory.
        """
        if x.descale or not self._scaled:
            return x.descale
        found = cupy.ndarray((x.batches, x.rows, 2), cupy.float32, memory + offset)
        found.fill(1)
        return int(found.data.ptr)
