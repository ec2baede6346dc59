"""Launches of the pack kernel, which lays operands out in planes for the wgmma family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cupy

from argand.device import Device
from argand.gemm.absmax_launch import AbsmaxLaunch
from argand.gemm.base_address import BaseAddress
from argand.gemm.pack.plan import (
    THREADS,
    PackPlan,
    panel_rows,
    panels_resident,
    pitch_of,
    planes_bytes,
    scales,
)
from argand.gemm.pack.source import PACK_SOURCE, pack_arguments, pack_kernel_name, pack_source
from argand.gemm.pack.tiles import laid_out
from argand.gemm.workspace import aligned
from argand.precision import Precision
from argand.runtime.calls.layout import Layout, is_k_major
from argand.runtime.compile.loading import PendingKernel
from argand.runtime.launch.arguments import Address, Arguments, arguments_dtype
from argand.runtime.launch.kernel import BoundKernel


@dataclass(frozen=True, eq=False)
class Planes:
    """Rows of op(A), or columns of op(B) as rows, by k, as (batches, 2 terms, rows, pitch).

    Each term has a plane of real and one of imaginary parts, k-major and zero from k to ``pitch``:
    ``nbytes`` from ``address`` on. At ``descale`` lie (batches, rows, 2) fp32 that scale results
    back where rows were scaled, else it is 0. ``batches`` is 1 where one matrix serves a whole
    batch. ``memory`` is the array of bytes that holds a packed operand, None where the caller keeps
    the memory. ``copy`` is the same operand as contiguous complex64, for small products.
    """

    address: int
    nbytes: int
    descale: int
    rows: int
    pitch: int
    batches: int
    memory: Any = None
    copy: Any = None


def planes_for(x: Planes, held: tuple[int, ...], needed: tuple[int, ...]) -> Planes:
    """Return planes for the leading axes ``needed``; those held are repeated in memory.

    One matrix serves any batch as it is.
    """
    if x.batches == 1 or held == needed:
        return x

    def part(address: int, nbytes: int) -> Any:
        """Return a part of the planes' memory, repeated, one matrix a row."""
        start = address - x.memory.data.ptr
        rows = x.memory[start : start + nbytes].reshape(*held, -1)
        return cupy.broadcast_to(rows, needed + rows.shape[-1:]).reshape(-1)

    parts = [part(x.address, x.nbytes)]
    if x.descale:
        parts.append(part(x.descale, 8 * x.batches * x.rows))
    memory = cupy.concatenate(parts)
    first = int(memory.data.ptr)
    descale = first + parts[0].nbytes if x.descale else 0
    return Planes(first, parts[0].nbytes, descale, x.rows, x.pitch, math.prod(needed), memory)


@dataclass(frozen=True)
class PackSource:
    """An operand to pack: its layout, and what packing does beside rounding.

    ``layout`` is rows by k, complex64, or uint32 pairs of 16 bits with ``half``; a batch stride of
    0 packs it once. ``conjugate`` takes the conjugate; ``exchanges_k`` is that of `PackPlan`.
    """

    layout: Layout
    half: bool = False
    conjugate: bool = False
    exchanges_k: bool = False

    def plan(self, precision: Precision) -> PackPlan:
        """Return how the pack kernel reads it."""
        along_k = is_k_major(self.layout)
        rows = panel_rows(precision, self.half, pitch_of(self.layout.columns))
        vector = 2 if self.layout.in_pairs(along_k) else 1
        return PackPlan(self.half, along_k, vector, rows, self.exchanges_k)


class PackLaunch:
    """One launch that packs one operand or two, of ``batch`` products."""

    def __init__(
        self, precision: Precision, sources: Sequence[PackSource], batch: int, device: Device
    ) -> None:
        plans = [source.plan(precision) for source in sources]
        pitches = [pitch_of(x.layout.columns) for x in sources]
        matrices = [(x.layout.rows, batch if x.layout.batch_stride else 1) for x in sources]
        plans = laid_out(plans, precision, pitches, matrices, device.sm_count)
        resident = all(
            plan.cluster > 1 or panels_resident(plan, pitch, device.sm_count)
            for plan, pitch in zip(plans, pitches, strict=True)
        )
        self._absmax = None
        if not resident and any(scales(precision, plan) for plan in plans):
            self._absmax = AbsmaxLaunch([x.layout for x in sources], batch, device)
        self._precision, self._batch = precision, batch
        self._outputs: list[_PackedOutput] = []
        #: Bytes of counters that a call finds zero and leaves zero.
        self.counters = 0
        #: Bytes of the planes and their descale factors.
        self.nbytes = 0
        values: dict[str, int] = {}
        blocks = []
        for i, (source, plan) in enumerate(zip(sources, plans, strict=True)):
            count, numbers = self._reserve(source, plan, resident=resident)
            blocks.append(count)
            values |= {f"{name}_{i}": numbers[name] for _, name in PACK_SOURCE}
        kernel = PendingKernel(
            pack_source(precision, plans), device.target, pack_kernel_name(precision, plans)
        )
        arguments = Arguments(
            arguments_dtype(pack_arguments(len(plans))), values | {"first_blocks": blocks[0]}
        )
        #: The pack kernel's launch, after the absmax kernel where there is one.
        self.kernel = BoundKernel(kernel, sum(blocks), THREADS, arguments)

    def _reserve(
        self, source: PackSource, plan: PackPlan, *, resident: bool
    ) -> tuple[int, dict[str, int]]:
        """Reserve an operand's planes and counters, and return its blocks and its arguments.

        Where all panels are ``resident`` the kernel finds the absmax of rows that it scales: blocks
        of a cluster exchange it in shared memory, others through counters.
        """
        x, precision = source.layout, self._precision
        batches = self._batch if x.batch_stride else 1
        pitch, scaled = pitch_of(x.columns), scales(precision, plan)
        finds = scaled and resident
        exchange = finds and plan.cluster == 1
        count = plan.panels(x.rows, batches)
        # The panels' counters come first, then the rows' absmax.
        arrived = self.counters
        row_absmax = arrived + 8 * count
        if exchange:
            self.counters = row_absmax + -(-4 * batches * x.rows // 8) * 8
        size = planes_bytes(precision, x.rows, x.columns, batches)
        descale = self.nbytes + aligned(size)
        self._outputs.append(_PackedOutput(
            self.nbytes, size, descale if scaled else None, x.rows, pitch, batches,
            (arrived, row_absmax) if exchange else None,
        ))  # fmt: skip
        self.nbytes = descale + (aligned(8 * batches * x.rows) if scaled else 0)
        return count * plan.panel_blocks(pitch), {
            "x": 0, "planes": 0, "row_absmax": 0, "panel_counters": 0, "descale": 0,
            "row_stride": x.row_stride, "k_stride": x.column_stride,
            "batch_stride": x.batch_stride, "rows": x.rows, "k": x.columns, "pitch": pitch,
            "exchange_absmax": finds, "conjugate": source.conjugate,
        }  # fmt: skip

    def planes(self, memory: int) -> list[Planes]:
        """Return each operand's planes in memory that begins at this address."""
        return [output.at(memory) for output in self._outputs]

    def __call__(
        self, addresses: Sequence[int], memory: int, *, zeros: int, absmax: int = 0
    ) -> None:
        """Pack the operands at these addresses into ``nbytes`` of memory, at a multiple of 256.

        ``zeros`` is the address of ``counters`` bytes that are zero, and are left zero, ``absmax``
        that of ``absmax_bytes`` for what the absmax kernel finds.
        """
        given: dict[int, int] = {
            BaseAddress.ROWS: addresses[0], BaseAddress.COLUMNS: addresses[-1],
            BaseAddress.WORKSPACE: memory, BaseAddress.COUNTERS: zeros,
        }  # fmt: skip
        found = self.addresses((BaseAddress.ROWS, BaseAddress.COLUMNS)[: len(addresses)])
        members = {name: given[base] + offset for name, (base, offset) in found.items()}
        if self._absmax is not None:
            for i, address in enumerate(self._absmax(addresses, absmax)):
                members[f"row_absmax_{i}"] = address
        self.kernel(members)

    def addresses(self, sources: Sequence[BaseAddress]) -> dict[str, Address]:
        """Return the addresses in the pack kernel's arguments, without the absmax kernel's."""
        found = {}
        for i, (source, output) in enumerate(zip(sources, self._outputs, strict=True)):
            found[f"x_{i}"] = Address(source)
            found[f"planes_{i}"] = Address(BaseAddress.WORKSPACE, output.planes)
            if output.descale is not None:
                found[f"descale_{i}"] = Address(BaseAddress.WORKSPACE, output.descale)
            if output.counters is not None:
                found[f"panel_counters_{i}"] = Address(BaseAddress.COUNTERS, output.counters[0])
                found[f"row_absmax_{i}"] = Address(BaseAddress.COUNTERS, output.counters[1])
        return found

    @property
    def absmax_before(self) -> bool:
        """Whether the absmax kernel runs before."""
        return self._absmax is not None

    @property
    def absmax_bytes(self) -> int:
        """Bytes of what that kernel finds."""
        return 0 if self._absmax is None else self._absmax.nbytes


@dataclass(frozen=True)
class _PackedOutput:
    """The place in memory of one operand's planes, ``nbytes``, and of their descale factors.

    ``planes``, ``descale`` and ``counters`` (of panels, and of rows' absmax where the kernel's
    blocks find it) are offsets in bytes.
    """

    planes: int
    nbytes: int
    descale: int | None
    rows: int
    pitch: int
    batches: int
    counters: tuple[int, int] | None

    def at(self, memory: int) -> Planes:
        """Return the planes in memory that begins at this address."""
        descale = 0 if self.descale is None else memory + self.descale
        return Planes(
            memory + self.planes, self.nbytes, descale, self.rows, self.pitch, self.batches
        )
