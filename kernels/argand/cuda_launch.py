"""A whole product on a GPU prepared for operands of one form: packing, kernel, adding up parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import cupy

from argand import tuning
from argand.cuda_arrays import Layout, k_fast
from argand.cuda_mma import MmaLaunch
from argand.cuda_pack import PackLaunch, PackSource, Planes
from argand.cuda_reduce import ReduceLaunch
from argand.cuda_wgmma import WgmmaLaunch, WgmmaProblem, copyable
from argand.device import Device, gpu
from argand.forced import Forced
from argand.gemm import GemmProblem
from argand.gemm_choice import GemmChoice, GemmSizes, OperandTraits, choose
from argand.precision import Precision


@dataclass(frozen=True)
class OperandForm:
    """What a launch is prepared for: how an operand lies in memory, not where.

    ``lines`` are rows of op(A) or columns of op(B), by k; None for planes. ``half`` says that they
    are pairs of 16 bits, ``conjugated`` that they have yet to be conjugated, ``batched`` that each
    product has its own.
    """

    lines: Layout | None
    half: bool = False
    conjugated: bool = False
    batched: bool = True

    @property
    def traits(self) -> OperandTraits:
        """What the choice needs to know."""
        if self.lines is None:
            return OperandTraits(packed=True, batched=self.batched)
        return OperandTraits(
            copyable(self.lines), k_fast(self.lines), self.half,
            batched=self.batched, conjugated=self.conjugated,
        )  # fmt: skip


forced: Forced[GemmChoice] = Forced()
"""The choice of every product within ``forced.to(choice)``: for tests and for tuning.

A row operand that cannot be read as the choice has it is packed.
"""


def prepare(
    problem: GemmProblem,
    a: OperandForm,
    b: OperandForm,
    c: Layout | None,
    out: Layout,
) -> GemmLaunch:
    """The launches that solve a problem on the current device."""
    device = cupy.cuda.Device().id
    choice = forced.value
    if choice is None:
        return _prepared(problem, a, b, c, out, device, tuning.TABLE.generation)
    return GemmLaunch(problem, a, b, c, out, _adapted(choice, a.traits, b.traits), gpu(device))


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
    sizes = GemmSizes(problem.batch, problem.m, problem.n, problem.k, out.item == 4)
    choice = choice_for(problem.precision, sizes, a.traits, b.traits, device)
    return GemmLaunch(problem, a, b, c, out, choice, gpu(device))


def choice_for(
    precision: Precision, sizes: GemmSizes, a: OperandTraits, b: OperandTraits, device: int
) -> GemmChoice:
    """What the device's measured table says, else the least estimate."""
    found = gpu(device)
    return tuning.lookup(precision, sizes, a, b, device) or choose(
        precision, found.require_arch(), found.cores, sizes, a, b
    )


def _adapted(choice: GemmChoice, a: OperandTraits, b: OperandTraits) -> GemmChoice:
    """Operands that cannot be read as the choice has it are packed beforehand."""
    if choice.plan is None:
        return choice
    rows, columns = (b, a) if choice.swapped else (a, b)
    readable = rows.readable(columns) and rows.half == (choice.plan.storage == "half")
    storage = choice.plan.storage if readable else "planar"
    contiguous = storage != "planar" and rows.k_fast
    packs = choice.plan.packs and storage == "fp32" and columns.packable_aside
    plan = replace(choice.plan, storage=storage, k_fast=contiguous, packs=packs)
    return replace(choice, plan=plan)


class GemmLaunch:
    """Everything that one product takes, for operands of these forms at any address."""

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
        #: Bytes of memory that a call takes for planes and pieces of tiles; parts of k come to it.
        self.nbytes = 0
        self._mma: MmaLaunch | None = None
        addend = out if c is None else c
        if choice.plan is None:
            assert a.lines is not None
            assert b.lines is not None
            self._mma = MmaLaunch(problem, a.lines, b.lines, addend, out, device)
            return
        plan, precision = choice.plan, problem.precision
        rows, columns, lines_m, lines_n = a, b, problem.m, problem.n
        if choice.swapped:
            rows, columns, lines_m, lines_n = b, a, problem.n, problem.m
            out, addend = out.transposed, addend.transposed
        planar = plan.storage == "planar"
        # conj(X) Y = conj(X conj(Y)): an interleaved row operand cannot be conjugated on its way.
        flip_result = not planar and rows.conjugated

        self._packs_rows = planar and rows.lines is not None
        self._packs_columns = columns.lines is not None and not plan.packs
        packed_here = [(rows, False)] * planar + [(columns, flip_result)] * self._packs_columns
        sources = [
            PackSource(x.lines, x.half, x.conjugated != flip)
            for x, flip in packed_here
            if x.lines is not None
        ]
        self._pack = PackLaunch(precision, sources, problem.batch, device) if sources else None
        packed = 0 if self._pack is None else self._pack.nbytes
        self._scaled = precision.scaled and not plan.prescaled
        self._partial: tuple[int, ...] = ()
        alpha, beta = problem.alpha, problem.beta
        target = out
        if choice.parts > 1:
            self._partial = (choice.parts, problem.batch, lines_m, lines_n)
            self._reduce = ReduceLaunch(
                choice.parts, problem.batch, addend, out, alpha, beta, device
            )
            target = Layout(lines_m, lines_n, lines_n, 1, lines_m * lines_n, 8, 32)
            alpha, beta, addend = 1, 0, target
        self._multiply = WgmmaLaunch(
            precision, plan,
            WgmmaProblem(
                lines_m, lines_n, problem.k, problem.batch, rows.batched, columns.batched,
                complex(alpha), complex(beta), flip_result, choice.parts,
            ),
            None if planar else rows.lines, addend, target, device,
            columns.lines if plan.packs else None, columns.conjugated != flip_result,
        )  # fmt: skip
        self._pieces = packed
        self.nbytes = packed + self._multiply.nbytes

    def __call__(self, a: int | Planes, b: int | Planes, c: int, out: int) -> None:
        """Launch on these addresses or planes; c is not read where beta is 0."""
        if self._mma is not None:
            assert isinstance(a, int)
            assert isinstance(b, int)
            self._mma(a, b, c, out)
            return
        rows, columns = (b, a) if self.choice.swapped else (a, b)
        # One piece of memory for all; freed after the launches, it is reused in the stream's order.
        memory = cupy.cuda.alloc(self.nbytes) if self.nbytes else None
        at = 0 if memory is None else memory.ptr
        if self._pack is not None:
            wanted = (rows,) * self._packs_rows + (columns,) * self._packs_columns
            planes = self._pack([x for x in wanted if isinstance(x, int)], at)
            rows = planes[0] if self._packs_rows else rows
            columns = planes[-1] if self._packs_columns else columns
        if self._scaled:
            assert isinstance(columns, Planes)
            columns = _with_unscale(columns)
            rows = _with_unscale(rows) if isinstance(rows, Planes) else rows
        if not self._partial:
            self._multiply(rows, columns, c, out, at + self._pieces)
            return
        sums = cupy.empty(self._partial, cupy.complex64)
        self._multiply(rows, columns, 0, sums.data.ptr, at + self._pieces)
        self._reduce(sums.data.ptr, c, out)


def _with_unscale(x: Planes) -> Planes:
    """Planes that were packed from 16-bit numbers, beside scaled ones: scaled by 1."""
    if x.unscale:
        return x
    ones = cupy.ones((x.batches, x.lines, 2), cupy.float32)
    return replace(x, unscale=int(ones.data.ptr), memory=(x.memory, ones))


def planes_for(x: Planes, held: tuple[int, ...], wanted: tuple[int, ...]) -> Planes:
    """Planes for a batch; one matrix serves any, other leading axes are repeated in memory."""
    if x.batches == 1 or held == wanted:
        return x

    def part(address: int, nbytes: int) -> Any:
        """A part of the planes' memory, repeated: one matrix a row."""
        start = address - x.memory.data.ptr
        rows = x.memory[start : start + nbytes].reshape(*held, -1)
        return cupy.broadcast_to(rows, wanted + rows.shape[-1:]).reshape(-1)

    parts = [part(x.address, x.nbytes)]
    if x.unscale:
        parts.append(part(x.unscale, 8 * x.batches * x.lines))
    memory = cupy.concatenate(parts)
    first = int(memory.data.ptr)
    unscale = first + parts[0].nbytes if x.unscale else 0
    return Planes(first, parts[0].nbytes, unscale, x.lines, x.pitch, math.prod(wanted), memory)
