"""A product on a GPU, prepared for operands of one form: packing, kernel, split-K reduction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import cupy

from argand.device import Device, gpu
from argand.gemm import tuned as tuning
from argand.gemm.candidates import GemmChoice, GemmSizes, OperandTraits, adapted, partials_capacity
from argand.gemm.families import Family
from argand.gemm.fma_launch import FmaLaunch
from argand.gemm.heuristics import choose, relative_memory
from argand.gemm.names import computed_name, in_place_name, wgmma_name
from argand.gemm.operand_form import OperandForm
from argand.gemm.pack_launch import PackLaunch, PackSource, Planes
from argand.gemm.problem import GemmProblem
from argand.gemm.sm80_launch import MmaLaunch
from argand.gemm.sm90_form import WgmmaProblem
from argand.gemm.sm90_launch import WgmmaLaunch
from argand.gemm.sm90_plan import WgmmaPlan
from argand.gemm.sm90_scheduler import OwnPlanes, Workspace
from argand.gemm.splitk_reduce import ReduceLaunch
from argand.precision import Precision
from argand.runtime import kernel_trace as launches
from argand.runtime.arguments import Address, BaseAddress
from argand.runtime.graph import LaunchSequence
from argand.runtime.kernel import ArgumentUpdate, BoundKernel
from argand.runtime.layout import Layout
from argand.runtime.plan import PlanError
from argand.runtime.plan_override import PlanOverride
from argand.runtime.workspace import call_memory, zeroed_workspace

PLAN_OVERRIDE: PlanOverride[GemmChoice] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use(choice)`` every product takes this choice: for tests and tuning.

A row operand that the choice cannot read in place is packed.
"""


def prepare(
    problem: GemmProblem,
    a: OperandForm,
    b: OperandForm,
    c: Layout | None,
    out: Layout,
) -> GemmLaunch:
    """Return the launches that solve a problem on the current device."""
    device = cupy.cuda.Device().id
    choice = PLAN_OVERRIDE.value
    if choice is None:
        return _prepared(problem, a, b, c, out, device, tuning.TABLE.generation)
    return GemmLaunch(
        problem, a, b, c, out,
        adapted(choice, choice.computed_at(problem.precision), a.traits, b.traits), gpu(device),
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _prepared(
    problem: GemmProblem,
    a: OperandForm,
    b: OperandForm,
    c: Layout | None,
    out: Layout,
    device: int,
    _generation: int,
) -> GemmLaunch:
    sizes = GemmSizes(
        problem.batch, problem.m, problem.n, problem.k, out.item == 4, problem.triangle
    )
    choice = choice_for(problem.precision, sizes, a.traits, b.traits, device, problem.kernels)
    return GemmLaunch(problem, a, b, c, out, choice, gpu(device))


def choice_for(
    precision: Precision,
    sizes: GemmSizes,
    a: OperandTraits,
    b: OperandTraits,
    device: int,
    family: Family | None = None,
) -> GemmChoice:
    """Return the device's tuned plan, else the candidate of the least estimate, of a family."""
    found = gpu(device)
    # Tuned plans are of whole products.
    measured = None if sizes.triangle else tuning.lookup(precision, sizes, a, b, device)
    if measured is not None and family in (None, measured.family):
        return measured
    return choose(
        precision, found.require_arch(), found.sm_count, sizes, a, b, family,
        memory=relative_memory(found.memory_rate),
    )  # fmt: skip


class GemmLaunch:
    """The launches of one product, for operands of these forms at any address."""

    def __init__(
        self,
        problem: GemmProblem,
        a: OperandForm,
        b: OperandForm,
        c: Layout | None,
        out: Layout,
        choice: GemmChoice,
        device: Device,
    ) -> None:
        self.choice = choice
        asked = problem.precision
        problem = replace(problem, precision=choice.computed_at(asked))
        if choice.unscaled and any(x.layout is None or x.half for x in (a, b)):
            raise PlanError(f"packed operands and pairs are in the format of {asked.name}")
        self._device = device.index
        #: Bytes of workspace of a call: planes, and partial tiles or split-K slices.
        self.nbytes = 0
        self._mma: MmaLaunch | FmaLaunch | None = None
        addend = out if c is None else c
        if choice.plan is None:
            first, second = a.layout or a.copy, b.layout or b.copy
            assert first is not None
            assert second is not None
            if choice.fma is not None:
                self._mma = FmaLaunch(problem, first, second, addend, out, device, choice.fma)
            else:
                self._mma = MmaLaunch(problem, first, second, addend, out, device, choice.tile)
                self.nbytes = self._mma.nbytes
            #: The launch's name in records.
            self.name = computed_name(
                in_place_name(self._mma.plan, problem.precision, a.traits, b.traits),
                asked, problem.precision,
            )  # fmt: skip
            return
        plan, precision = choice.plan, problem.precision
        rows, columns, num_rows, num_columns = a, b, problem.m, problem.n
        if choice.swapped:
            rows, columns, num_rows, num_columns = b, a, problem.n, problem.m
            out, addend = out.transposed, addend.transposed
        planar = plan.storage == "planar"
        # conj(X) Y = conj(X conj(Y)): the kernel cannot conjugate an interleaved row operand.
        flip_result = not planar and rows.conjugated

        self._packs_rows = planar and rows.layout is not None
        #: Whether the planes of the row operand are those of the column operand too.
        self._one_operand = plan.conjugate_y
        self._packs_columns = columns.layout is not None and not (
            plan.fused_pack or self._one_operand
        )
        packed_here = [(rows, False)] * planar + [(columns, flip_result)] * self._packs_columns
        exchanges_k = plan.odd_batches and not plan.k_major
        sources = [
            PackSource(x.layout, x.half, x.conjugated != flip, exchanges_k)
            for x, flip in packed_here
            if x.layout is not None
        ]
        self._pack = PackLaunch(precision, sources, problem.batch, device) if sources else None
        packed = 0 if self._pack is None else self._pack.nbytes
        self._scaled = precision.scaled and not plan.prescaled
        self._slices_shape: tuple[int, ...] = ()
        alpha, beta = problem.alpha, problem.beta
        target = out
        self._reduce: ReduceLaunch | None = None
        if choice.split_k_slices > 1:
            self._slices_shape = (choice.split_k_slices, problem.batch, num_rows, num_columns)
            self._reduce = ReduceLaunch(
                choice.split_k_slices, problem.batch, addend, out, alpha, beta, device
            )
            target = Layout(num_rows, num_columns, num_columns, 1, num_rows * num_columns, 8, 32)
            alpha, beta, addend = 1, 0, target
        capacity = partials_capacity(
            choice, precision, GemmSizes(problem.batch, problem.m, problem.n, problem.k),
            a.traits, b.traits,
        )  # fmt: skip
        self._multiply = WgmmaLaunch(
            precision, plan,
            WgmmaProblem(
                num_rows, num_columns, problem.k, problem.batch, rows.batched, columns.batched,
                complex(alpha), complex(beta), flip_result, choice.split_k_slices,
            ),
            None if planar else rows.layout, addend, target, device,
            columns.layout if plan.fused_pack else None, columns.conjugated != flip_result,
            Workspace(packed, capacity, self._own_planes(plan, precision)),
        )  # fmt: skip
        made = self._multiply
        self.name = computed_name(
            wgmma_name(choice, made.plan, made.division, a.traits, b.traits), asked, precision
        )
        self._swapped = choice.swapped
        own = self._pack.planes(0) if self._pack else []
        #: Offsets of the planes that are packed here, and of their descale factors.
        self._planes_offsets = [(planes.address, planes.descale) for planes in own]
        self._counters = max(self._multiply.counters, self._pack.counters if self._pack else 0)
        self._slices_offset = -(-(packed + self._multiply.nbytes) // 256) * 256
        self.nbytes = packed + self._multiply.nbytes
        kernels = list(self.kernels)
        if self._pack is not None and not self._pack.scanned:
            kernels.insert(0, self._pack.kernel)
        if self._reduce is not None:
            self.nbytes = self._slices_offset + 8 * math.prod(self._slices_shape)
            kernels.append(self._reduce.kernel)
        self._launches = LaunchSequence(kernels, self._updates)

    @property
    def sequence(self) -> LaunchSequence | None:
        """The launches in place without a scan, of addresses a, b, c, out, 0, 0; else None."""
        return None if self._mma is None else self._mma.sequence

    @property
    def kernels(self) -> Sequence[BoundKernel]:
        """Return the launches of the product: two where partial tiles lie over planes, else one."""
        return [] if self._mma is not None else self._multiply.kernels

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
        if launches.watching:
            launches.note(self.name)
        if self._mma is not None:
            left = a.copy.data.ptr if isinstance(a, Planes) else a
            right = b.copy.data.ptr if isinstance(b, Planes) else b
            self._mma(left, right, c, out)
            return
        rows, columns = (b, a) if self._swapped else (a, b)
        stream = cupy.cuda.get_current_stream().ptr
        # One allocation for all; freed after the launches, it is reused in the stream's order.
        memory = call_memory(self.nbytes) if self.nbytes else None
        at = 0 if memory is None else memory.ptr
        zeros = zeroed_workspace(self._counters, stream, self._device) if self._counters else 0
        ones: list[Any] = []
        x_descale = y_descale = 0
        if isinstance(rows, Planes):
            x_descale, rows = self._descale(rows, ones), rows.address
        if isinstance(columns, Planes):
            y_descale, columns = self._descale(columns, ones), columns.address
        if self._pack is not None and self._pack.scanned:
            sources = (rows,) * self._packs_rows + (columns,) * self._packs_columns
            self._pack(sources, at, zeros=zeros)
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
            if not self._pack.scanned:
                members = self._pack.addresses(sources)
                found.append(self._pack.kernel.argument_update(members, (), addresses))
            packed = [[Address(BaseAddress.MEMORY, x) for x in of] for of in self._planes_offsets]
            if self._packs_rows:
                rows, x_descale = packed[0]
            if self._packs_columns or self._one_operand:
                columns, y_descale = packed[-1]
        slices = Address(BaseAddress.MEMORY, self._slices_offset)
        if self._reduce is not None:
            found.append(
                self._reduce.kernel.argument_update(self._reduce.addresses(slices), (), addresses)
            )
            out = slices
        given, maps = self._multiply.addresses(
            rows, columns, c, out, (x_descale, y_descale) if self._scaled else None
        )
        return [*found, *(x.argument_update(given, maps, addresses) for x in self.kernels)]

    def _descale(self, x: Planes, ones: list[Any]) -> int:
        """Return the address of the descale factors of planes.

        Planes that were packed from 16-bit numbers have none; beside scaled planes theirs are 1,
        kept in ``ones`` until the launch.
        """
        if x.descale or not self._scaled:
            return x.descale
        shape = (x.batches, x.rows, 2)
        found = cupy.ndarray(shape, cupy.float32, call_memory(8 * x.batches * x.rows))
        found.fill(1)
        ones.append(found)
        return int(ones[-1].data.ptr)
