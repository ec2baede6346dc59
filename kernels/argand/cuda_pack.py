"""Operands laid out in planes on a GPU, for the wgmma family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy

from argand import nvrtc
from argand.cuda_arrays import Layout, k_fast
from argand.device import Device
from argand.kernel_arguments import Arguments, arguments_dtype
from argand.pack_plan import (
    PACK_ARGUMENTS,
    PITCH,
    THREADS,
    PackPlan,
    pack_grid,
    pack_kernel_name,
    pack_source,
    scales,
)
from argand.precision import Precision


@dataclass(frozen=True)
class Planes:
    """Lines (rows of A or columns of B) by k, as (batches, 2 terms, lines, pitch).

    Of each term the real and the imaginary parts, k contiguous and zero from k to ``pitch``.
    ``unscale`` (batches, lines, 2) scales results back where lines were scaled, else None.
    ``batches`` is 1 where one matrix serves a whole batch.
    """

    array: Any
    unscale: Any
    lines: int
    k: int
    batches: int

    @property
    def pitch(self) -> int:
        """Numbers from one line to the next."""
        return int(self.array.shape[-1])

    @property
    def nbytes(self) -> int:
        """What it takes on the device."""
        return int(self.array.nbytes + (0 if self.unscale is None else self.unscale.nbytes))


class PackLaunch:
    """Lays out operands of one layout (lines by k, complex64 or uint32 pairs of 16 bits).

    ``batch`` is how many products there are; a source with a batch stride of 0 is packed once.
    ``flip`` conjugates.
    """

    def __init__(
        self,
        precision: Precision,
        x: Layout,
        batch: int,
        device: Device,
        *,
        half_source: bool = False,
        flip: bool = False,
    ) -> None:
        along_k = k_fast(x)
        plan = PackPlan(half_source, along_k, 2 if x.in_pairs(along_k) else 1)
        pitch = max(PITCH, -(-x.columns // PITCH) * PITCH)
        self._lines, self._k, self._batches = x.rows, x.columns, batch if x.batch_stride else 1
        self._grid = pack_grid(precision, plan, x.rows, pitch, self._batches)
        self._scaled = scales(precision, plan)
        self._shape = (self._batches, 2 * precision.terms, x.rows, pitch)
        self._dtype = cupy.uint32 if precision.operand.bytes == 4 else cupy.uint16
        self._kernel = nvrtc.load(
            pack_source(precision, plan), device.target, pack_kernel_name(precision, plan)
        )
        values = {
            "x": 0, "planes": 0, "largest": 0, "arrived": 0, "unscale": 0,
            "line_stride": x.row_stride, "k_stride": x.column_stride,
            "batch_stride": x.batch_stride, "lines": x.rows, "k": x.columns, "pitch": pitch,
            "batches": self._batches, "lag": self._grid.lag, "flip": flip,
        }  # fmt: skip
        self._arguments = Arguments(_DTYPE, values)

    def __call__(self, address: int) -> Planes:
        """Pack what lies there."""
        array = cupy.empty(self._shape, self._dtype)
        members = {"x": address, "planes": array.data.ptr}
        unscale = None
        if self._scaled:
            # One array, so that one call clears it: lines' magnitudes, then strips' counters.
            lines = self._batches * self._lines
            largest = cupy.zeros(lines + self._grid.strips, cupy.uint32)
            unscale = cupy.empty((self._batches, self._lines, 2), cupy.float32)
            members["largest"] = largest.data.ptr
            members["arrived"] = largest.data.ptr + 4 * lines
            members["unscale"] = unscale.data.ptr
        self._kernel((self._grid.blocks,), (THREADS,), (self._arguments.at(**members),))
        return Planes(array, unscale, self._lines, self._k, self._batches)


_DTYPE = arguments_dtype(PACK_ARGUMENTS)
