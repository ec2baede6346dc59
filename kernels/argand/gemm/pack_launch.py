"""Operands laid out in planes on a GPU, for the wgmma family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cupy

from argand.device import Device
from argand.gemm.pack_plan import (
    PACK_SOURCE,
    THREADS,
    PackPlan,
    can_wait,
    lines_of,
    pack_arguments,
    pack_kernel_name,
    pack_source,
    pitch_of,
    planes_bytes,
    scales,
)
from argand.gemm.scan_launch import ScanLaunch
from argand.precision import Precision
from argand.runtime import compiler as nvrtc
from argand.runtime.arguments import Address, Arguments, Base, arguments_dtype
from argand.runtime.kernel import BoundKernel
from argand.runtime.layout import Layout, is_k_major


@dataclass(frozen=True, eq=False)
class Planes:
    """Lines (rows of A or columns of B) by k, as (batches, 2 terms, lines, pitch).

    Of each term the real and the imaginary parts, k contiguous and zero from k to ``pitch``:
    ``nbytes`` from ``address`` on. At ``descale`` lie (batches, lines, 2) fp32 that scale results
    back where lines were scaled, else it is 0. ``batches`` is 1 where one matrix serves a whole
    batch. ``memory`` keeps both alive, an array of bytes for a packed operand; it is None where a
    caller does. ``copy`` is the same operand as contiguous complex64, for small products.
    """

    address: int
    nbytes: int
    descale: int
    lines: int
    pitch: int
    batches: int
    memory: Any = None
    copy: Any = None


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
    if x.descale:
        parts.append(part(x.descale, 8 * x.batches * x.lines))
    memory = cupy.concatenate(parts)
    first = int(memory.data.ptr)
    descale = first + parts[0].nbytes if x.descale else 0
    return Planes(first, parts[0].nbytes, descale, x.lines, x.pitch, math.prod(wanted), memory)


@dataclass(frozen=True)
class PackSource:
    """An operand that is to be packed: where it lies, and what is done to it on the way.

    ``layout`` is lines by k, complex64, or uint32 pairs of 16 bits with ``half``; a batch stride of
    0 packs it once. ``flip`` conjugates.
    """

    layout: Layout
    half: bool = False
    flip: bool = False

    def plan(self, precision: Precision) -> PackPlan:
        """How a kernel reads it."""
        along_k = is_k_major(self.layout)
        lines = lines_of(precision, self.half, pitch_of(self.layout.columns))
        return PackPlan(self.half, along_k, 2 if self.layout.in_pairs(along_k) else 1, lines)


class PackLaunch:
    """Lays out one operand, or two at once.

    ``batch`` is how many products there are.
    """

    def __init__(
        self, precision: Precision, sources: Sequence[PackSource], batch: int, device: Device
    ) -> None:
        plans = [source.plan(precision) for source in sources]
        self._places = []
        values: dict[str, int] = {}
        blocks = []
        scaled = [scales(precision, plan) for plan in plans]
        pitches = [pitch_of(x.layout.columns) for x in sources]
        waits = all(
            can_wait(plan, pitch, device.sm_count)
            for plan, pitch in zip(plans, pitches, strict=True)
        )
        self._scan = None
        if any(scaled) and not waits:
            self._scan = ScanLaunch([x.layout for x in sources], batch, device)
        #: Bytes of counters that a call needs zero, and leaves so.
        self.counters = 0
        #: Bytes that planes and what scales their results back take.
        self.nbytes = 0
        for i, (source, plan, pitch) in enumerate(zip(sources, plans, pitches, strict=True)):
            x = source.layout
            batches = batch if x.batch_stride else 1
            wait = scaled[i] and waits
            count = plan.panels(x.rows, batches)
            # Strips' counters, then lines' magnitudes, where kernels leave zeros.
            arrived = self.counters
            largest = arrived + 8 * count
            if wait:
                self.counters = largest + -(-4 * batches * x.rows // 8) * 8
            size = planes_bytes(precision, x.rows, x.columns, batches)
            descale = self.nbytes + _aligned(size)
            self._places.append(_Place(
                self.nbytes, size, descale if scaled[i] else None, x.rows, pitch, batches,
                (arrived, largest) if wait else None,
            ))  # fmt: skip
            self.nbytes = descale + (_aligned(8 * batches * x.rows) if scaled[i] else 0)
            blocks.append(count * plan.panel_blocks(pitch))
            numbers = {
                "x": 0, "planes": 0, "row_absmax": 0, "panel_counters": 0, "descale": 0,
                "row_stride": x.row_stride, "k_stride": x.column_stride,
                "batch_stride": x.batch_stride, "rows": x.rows, "k": x.columns, "pitch": pitch,
                "exchange_absmax": wait, "conjugate": source.flip,
            }  # fmt: skip
            values |= {f"{name}_{i}": numbers[name] for _, name in PACK_SOURCE}
        kernel = nvrtc.load(
            pack_source(precision, plans), device.target, pack_kernel_name(precision, plans)
        )
        arguments = Arguments(
            arguments_dtype(pack_arguments(len(plans))), values | {"first_blocks": blocks[0]}
        )
        #: What packs, once lines were looked at.
        self.kernel = BoundKernel(kernel, sum(blocks), THREADS, arguments)

    def planes(self, memory: int) -> list[Planes]:
        """Each operand's planes in memory that begins there."""
        return [place.at(memory) for place in self._places]

    def __call__(self, addresses: Sequence[int], memory: int, *, zeros: int) -> None:
        """Pack what lies there into ``nbytes`` of memory, at a multiple of 256.

        ``zeros`` are ``counters`` bytes that are zero, and left so.
        """
        given: dict[int, int] = {
            Base.ROWS: addresses[0], Base.COLUMNS: addresses[-1],
            Base.MEMORY: memory, Base.ZEROS: zeros,
        }  # fmt: skip
        found = self.addresses((Base.ROWS, Base.COLUMNS)[: len(addresses)])
        members = {name: given[base] + offset for name, (base, offset) in found.items()}
        if self._scan is not None:
            largest = self._scan(addresses)
            for i, place in enumerate(self._scan.places(largest)):
                members[f"row_absmax_{i}"] = place
        self.kernel(members)

    def addresses(self, sources: Sequence[Base]) -> dict[str, Address]:
        """What ``kernel`` is given where the operands are these; not what a scan finds."""
        found = {}
        for i, (source, place) in enumerate(zip(sources, self._places, strict=True)):
            found[f"x_{i}"] = Address(source)
            found[f"planes_{i}"] = Address(Base.MEMORY, place.planes)
            if place.descale is not None:
                found[f"descale_{i}"] = Address(Base.MEMORY, place.descale)
            if place.counters is not None:
                found[f"panel_counters_{i}"] = Address(Base.ZEROS, place.counters[0])
                found[f"row_absmax_{i}"] = Address(Base.ZEROS, place.counters[1])
        return found

    @property
    def scanned(self) -> bool:
        """Whether lines are looked at in a pass before, into memory of its own."""
        return self._scan is not None


def _aligned(nbytes: int) -> int:
    """Up to where the next part begins."""
    return -(-nbytes // 256) * 256


@dataclass(frozen=True)
class _Place:
    """What an operand becomes, and where in the memory: bytes before its planes, and before what
    scales its results back.

    ``counters`` are the bytes before the panels' counters and before the lines' magnitudes, where
    the kernel's blocks find them.
    """  # noqa: D205

    planes: int
    nbytes: int
    descale: int | None
    lines: int
    pitch: int
    batches: int
    counters: tuple[int, int] | None

    def at(self, memory: int) -> Planes:
        """The planes in memory that begins there."""
        descale = 0 if self.descale is None else memory + self.descale
        return Planes(
            memory + self.planes, self.nbytes, descale, self.lines, self.pitch, self.batches
        )
