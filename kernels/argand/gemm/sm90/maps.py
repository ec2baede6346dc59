"""Tensor maps of a product of the wgmma family: of X in place or in planes, of Y, of the result."""

from __future__ import annotations

from collections.abc import Callable

from argand.gemm.pack.plan import pitch_of
from argand.gemm.sm90.plan import STORE_BOX_SIDE, WgmmaPlan
from argand.gemm.sm90.problem import WgmmaLayouts, WgmmaProblem
from argand.multiprocessor import SECTOR
from argand.precision import Precision
from argand.runtime.launch.arguments import Address
from argand.runtime.launch.tensor_map import TensorMap, tensor_map

_ELEMENT = 8
"""Bytes of a complex number of odd pitch."""


class WgmmaMaps:
    """The tensor maps of a kernel, for arrays at any address."""

    def __init__(
        self, precision: Precision, plan: WgmmaPlan, problem: WgmmaProblem, layouts: WgmmaLayouts
    ) -> None:
        self.plan, self._precision, self._problem = plan, precision, problem
        self._x, self._out = layouts.x, layouts.out

    @property
    def makers(self) -> tuple[Callable[[int], TensorMap], ...]:
        """Functions that make the maps of X, Y and the result, or of an X of odd pitch."""
        y = self._y_map
        if self._x is None:
            x = self._x_planes_map
        elif self.plan.odd_pitch:
            even, odd = self._parity_maps(0)
            return even, y, odd, *(self._parity_maps(1) if self.plan.odd_batches else ())
        else:
            x = self._interleaved_map
        # A kernel without a TMA epilogue does not read the third map.
        return x, y, self._out_map if self.plan.tma_epilogue else y

    def addresses(self, rows: Address, columns: Address, out: Address) -> tuple[Address, ...]:
        """Return the address that each map describes."""
        if not self.plan.odd_pitch:
            return rows, columns, out if self.plan.tma_epilogue else columns
        _, _, pitch, _ = self._lines()
        # In odd batches it is the odd lines that begin at 16 bytes.
        assert self._x is not None
        second = self._x.batch_stride
        found = [rows, columns, _offset(rows, pitch - 1)]
        if self.plan.odd_batches:
            found += [_offset(rows, second + pitch), _offset(rows, second - 1)]
        return tuple(found)

    def _parity_maps(
        self, batch: int
    ) -> tuple[Callable[[int], TensorMap], Callable[[int], TensorMap]]:
        """Return the makers of two maps: of the lines that begin at 16 bytes, and of the others.

        The others are mapped from one element before them. Each map has every second line, of all
        products, or in odd batches of those whose number has the parity ``batch``.
        """
        length, lines, pitch, box = self._lines()
        batches = self._batches
        step = 1
        if self.plan.odd_batches:
            batches, step = max(1, (batches + 1 - batch) // 2), 2

        def made(address: int, length: int, lines: int) -> TensorMap:
            return self._lines_map(address, (length, lines, batches), 2 * pitch, step, box // 2)

        whole = (lines + 1 - batch) // 2
        return (
            lambda address: made(address, length, whole),
            lambda address: made(address, length + 1, lines - whole),
        )

    @property
    def _batches(self) -> int:
        return self._problem.batch if self._problem.x_batched else 1

    def _lines(self) -> tuple[int, int, int, int]:
        """Return length, number and distance of an interleaved X's lines, and those of a box."""
        x, plan = self._x, self.plan
        assert x is not None
        if plan.k_major:
            return x.columns, x.rows, x.row_stride, plan.block_m
        return x.rows, x.columns, x.column_stride, plan.block_k

    def _interleaved_map(self, address: int) -> TensorMap:
        length, lines, pitch, box = self._lines()
        return self._lines_map(address, (length, lines, self._batches), pitch, 1, box)

    def _lines_map(
        self, address: int, shape: tuple[int, int, int], stride: int, step: int, box: int
    ) -> TensorMap:
        """Map lines ``stride`` elements apart, of every ``step``-th product."""
        assert self._x is not None
        item = self.plan.x_element_bytes(self._precision)
        strides = stride * item, (step * self._x.batch_stride or stride) * item
        return tensor_map(
            address, item, shape, strides,
            (self.plan.x_swizzle_elements(self._precision), box, 1), 128,
            _fetched_bytes(address, *strides),
        )  # fmt: skip

    def _out_map(self, address: int) -> TensorMap:
        out = self._out
        fast, slow, stride = (
            (out.rows, out.columns, out.column_stride) if self.plan.out_m_major
            else (out.columns, out.rows, out.row_stride)
        )  # fmt: skip
        products = self._problem.batch * self._problem.split_k_slices
        return tensor_map(
            address, out.item, (fast, slow, products),
            (stride * out.item, (out.batch_stride or stride) * out.item),
            (STORE_BOX_SIDE, STORE_BOX_SIDE, 1), 128,
        )  # fmt: skip

    def _x_planes_map(self, address: int) -> TensorMap:
        problem = self._problem
        return self._planes_map(address, problem.rows, problem.x_batched, self.plan.block_m)

    def _y_map(self, address: int) -> TensorMap:
        problem = self._problem
        return self._planes_map(address, problem.columns, problem.y_batched, self.plan.block_n)

    def _planes_map(self, address: int, rows: int, batched: bool, block_rows: int) -> TensorMap:
        item = self._precision.operand.bytes
        terms = self._precision.terms
        pitch = pitch_of(self._problem.k) * terms
        row_bytes = pitch * item
        batches = self._problem.batch if batched else 1
        return tensor_map(
            address, item, (pitch, rows, 2, batches),
            (row_bytes, rows * row_bytes, 2 * rows * row_bytes),
            (self.plan.box_k(self._precision) * terms, block_rows, 2, 1),
            self.plan.box_row_bytes(self._precision),
        )  # fmt: skip


def _fetched_bytes(*begins: int) -> int:
    """Return the bytes that L2 fetches at once for lines from these bytes on, so far apart.

    With 256, lines that begin within a sector come from L2 less fast. Others gain nothing by 128 in
    the mean, and some products lose.
    """
    return 128 if any(begin % SECTOR for begin in begins) else 256


def _offset(address: Address, elements: int) -> Address:
    return Address(address.base, address.offset + elements * _ELEMENT)
