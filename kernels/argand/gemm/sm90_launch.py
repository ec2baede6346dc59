"""Launches of the wgmma family: tensor maps and arguments."""

from __future__ import annotations

from argand.device import Device
from argand.gemm.pack_plan import pitch_of, plan_fused_pack, planes_bytes
from argand.gemm.sm90_form import (
    WgmmaProblem,
    arrange_overlapped,
    blocks_at_once,
    with_tma_epilogue,
)
from argand.gemm.sm90_plan import (
    STORE_SIDE,
    WARP,
    WARPGROUP,
    WGMMA_ARGUMENTS,
    WgmmaPlan,
    wgmma_kernel_name,
    wgmma_source,
)
from argand.gemm.sm90_scheduler import Memory, Tiles
from argand.gemm.sm90_throttle import find_throttle
from argand.precision import Precision
from argand.runtime import compiler as nvrtc
from argand.runtime.arguments import Address, Arguments, Base, arguments_dtype
from argand.runtime.kernel import BoundKernel
from argand.runtime.layout import Layout
from argand.runtime.tensor_map import ALIGNMENT, TensorMap, tensor_map

_DTYPE = arguments_dtype(WGMMA_ARGUMENTS)
_PACKING = (
    "y_pitch", "conjugate_y", "pack_rows", "panels_per_wave", "pack_maximum_lead",
    "y_stride_n", "y_stride_batch",
)  # fmt: skip
"""Arguments of packing on the way."""
_PACE_BYTES = 8
"""Two counters of blocks that keep pace."""


class WgmmaLaunch:
    """A kernel of the family for results of one layout.

    Args:
        precision, plan: the kernel; with storage ``planar`` the row operand is packed too.
        problem: the sizes.
        x: layout of an interleaved row operand that is `copyable`, None for a packed one.
        c: layout of C, out's where there is none.
        out: layout of the result, complex64, or uint32 pairs of 16 bits with ``half_output``.
        y: layout of a column operand that the plan packs on the way, which ``y_flip`` conjugates.
        memory: what the call has for pieces of tiles.
    """

    def __init__(
        self,
        precision: Precision,
        plan: WgmmaPlan,
        problem: WgmmaProblem,
        x: Layout | None,
        c: Layout,
        out: Layout,
        device: Device,
        y: Layout | None = None,
        y_flip: bool = False,
        memory: Memory = Memory(),  # noqa: B008
    ) -> None:
        plan = with_tma_epilogue(plan, precision, out, device.require_arch())
        self._precision, self._problem, self._x, self._out = precision, problem, x, out
        tiles = Tiles(
            -(-problem.rows // plan.block_m), -(-problem.columns // plan.block_n),
            problem.batch * problem.parts,
        )  # fmt: skip
        steps = -(-problem.k // plan.depth)
        most = blocks_at_once(problem, plan, tiles, device)
        plan, arranged = arrange_overlapped(
            plan, precision, problem, tiles, most, memory, device.require_arch()
        )
        #: The kernel, with how results leave and tiles follow each other here.
        self.plan = plan
        shared_bytes = plan.shared_bytes(precision)
        kernel = nvrtc.load(
            wgmma_source(precision, plan), device.target, wgmma_kernel_name(precision, plan),
            shared_bytes,
        )  # fmt: skip
        multiplying = plan.threads - WARPGROUP
        division = arranged.division
        #: How tiles are divided among blocks.
        self.division = division
        #: Bytes that sums of pieces take, planes of what is packed on the way, and totals beside C.
        self.nbytes = arranged.nbytes
        self._pieces_at = memory.taken if arranged.over is None else arranged.over
        self._planes_at = memory.taken + self.nbytes
        self._packed_at = 4 * division.blocks * multiplying // WARP
        #: Bytes of counters that a call needs zero, and leaves so.
        self.counters = self._packed_at if division.share else 0
        packing = dict.fromkeys(_PACKING, 0)
        if plan.fused_pack:
            assert y is not None
            batches = problem.batch if problem.y_batched else 1
            aside = plan_fused_pack(plan, problem.rows, y.rows, y.columns, batches, division.blocks)
            self.counters = self._packed_at + 4 * aside.counters
            self.nbytes += planes_bytes(precision, y.rows, y.columns, batches)
            packing = {
                "y_pitch": pitch_of(y.columns),
                "conjugate_y": y_flip,
                "pack_rows": aside.lines,
                "panels_per_wave": aside.round,
                "pack_maximum_lead": aside.lead,
                "y_stride_n": y.row_stride,
                "y_stride_batch": y.batch_stride,
            }
        self._pace_at = self.counters
        pace, lead = 0, 0
        if problem.parts == 1:  # else a turn's tiles may be of different length
            pace, lead = find_throttle(
                plan, precision, tiles, division, problem.k, device.cache_bytes
            )
        self.counters += _PACE_BYTES * (pace > 0)
        totals = out
        self._totals_at: int | None = None  # they are added up where the result will be
        part = -(-steps // problem.parts) * plan.depth
        if problem.beta != 0 and plan.spills_accumulators(precision, part):
            # C may lie there, which is wanted at the end.
            self._totals_at = -(-(memory.taken + self.nbytes) // ALIGNMENT) * ALIGNMENT
            totals = Layout(out.rows, out.columns, out.columns, 1, out.rows * out.columns, 8, 32)
            self.nbytes = (
                self._totals_at - memory.taken + 8 * problem.batch * out.rows * out.columns
            )
        # As adjacent_rows() of a kernel that stores directly: others do not look at it.
        neighbours = plan.storage != "planar" and not plan.k_major
        values = {
            "c": 0, "out": 0, "spill": 0, "x_descale": 0, "y_descale": 0,
            "m": problem.rows, "n": problem.columns, "k": problem.k,
            "batches": problem.batch, "x_batched": problem.x_batched,
            "y_batched": problem.y_batched,
            "partials": 0, "partials_ready": 0, "y_source": 0, "y_planes": 0, "packed_counts": 0,
            "throttle": 0, **packing, "throttle_interval": pace, "maximum_lead": lead,
            "split_k_slices": problem.parts, "k_tiles_per_slice": -(-steps // problem.parts),
            "first_tile": 0, "data_parallel_tiles": division.whole,
            "stream_k_tiles": division.split, "k_tiles_per_block": division.share,
            "aligned_period": division.period(steps),
            "c_stride_m": c.row_stride, "c_stride_n": c.column_stride,
            "c_stride_batch": c.batch_stride,
            "out_stride_m": out.row_stride, "out_stride_n": out.column_stride,
            "out_stride_batch": out.batch_stride,
            "spill_stride_m": totals.row_stride, "spill_stride_n": totals.column_stride,
            "spill_stride_batch": totals.batch_stride,
            "alpha_re": problem.alpha.real, "alpha_im": problem.alpha.imag,
            "beta_re": problem.beta.real, "beta_im": problem.beta.imag,
            "conjugate_result": problem.flip_result,
            "store_pairs_m": neighbours and out.in_pairs(along_columns=False),
            "store_pairs_n": out.in_pairs(along_columns=True),
            "spill_pairs_n": totals.in_pairs(along_columns=True),
        }  # fmt: skip
        described = (
            self._x_planes_map if x is None else self._interleaved_map,
            self._y_map,
            # A kernel that stores directly does not look at the third map.
            self._out_map if plan.tma_epilogue else self._y_map,
        )
        #: The launches of a call.
        self.kernels = [
            BoundKernel(
                kernel, blocks, plan.threads, Arguments(_DTYPE, values | changed),
                maps=described, shared_bytes=shared_bytes,
            )
            for blocks, changed in arranged.launches()
        ]  # fmt: skip

    def addresses(
        self, rows: Address, columns: Address, c: Address, out: Address,
        descale: tuple[Address, Address] | None = None,
    ) -> tuple[dict[str, Address], tuple[Address, ...]]:  # fmt: skip
        """What ``kernels`` are given: members of their arguments, and arrays that maps describe.

        In the call's memory ``nbytes`` follow what is taken already; ``counters`` of its zeros are
        left zero. ``descale`` is where lie what scales rows and columns back. The column operand is
        in planes unless the plan packs it. c is not read where beta is 0.
        """
        members = {
            "c": c, "out": out, "spill": out,
            "partials": Address(Base.MEMORY, self._pieces_at),
            "partials_ready": Address(Base.ZEROS),
            "packed_counts": Address(Base.ZEROS, self._packed_at),
            "throttle": Address(Base.ZEROS, self._pace_at),
        }  # fmt: skip
        if self.plan.fused_pack:
            members["y_source"] = columns
            columns = members["y_planes"] = Address(Base.MEMORY, self._planes_at)
        if self._totals_at is not None:
            members["spill"] = Address(Base.MEMORY, self._totals_at)
        if descale is not None:
            members["x_descale"], members["y_descale"] = descale
        return members, (rows, columns, out if self.plan.tma_epilogue else columns)

    def _interleaved_map(self, address: int) -> TensorMap:
        x, plan = self._x, self.plan
        assert x is not None
        item = plan.x_item(self._precision)
        fast, slow, stride, box = (
            (x.columns, x.rows, x.row_stride, plan.block_m) if plan.k_major
            else (x.rows, x.columns, x.column_stride, plan.depth)
        )  # fmt: skip
        batches = self._problem.batch if self._problem.x_batched else 1
        return tensor_map(
            address, item, (fast, slow, batches),
            (stride * item, (x.batch_stride or stride) * item),
            (plan.x_span(self._precision), box, 1), 128,
        )  # fmt: skip

    def _out_map(self, address: int) -> TensorMap:
        out = self._out
        fast, slow, stride = (
            (out.rows, out.columns, out.column_stride) if self.plan.out_m_major
            else (out.columns, out.rows, out.row_stride)
        )  # fmt: skip
        products = self._problem.batch * self._problem.parts
        return tensor_map(
            address, out.item, (fast, slow, products),
            (stride * out.item, (out.batch_stride or stride) * out.item),
            (STORE_SIDE, STORE_SIDE, 1), 128,
        )  # fmt: skip

    def _x_planes_map(self, address: int) -> TensorMap:
        problem = self._problem
        return self._planes_map(address, problem.rows, problem.x_batched, self.plan.block_m)

    def _y_map(self, address: int) -> TensorMap:
        problem = self._problem
        return self._planes_map(address, problem.columns, problem.y_batched, self.plan.block_n)

    def _planes_map(self, address: int, lines: int, batched: bool, of_tile: int) -> TensorMap:
        item = self._precision.operand.bytes
        terms = self._precision.terms
        pitch = pitch_of(self._problem.k) * terms
        line = pitch * item
        batches = self._problem.batch if batched else 1
        return tensor_map(
            address, item, (pitch, lines, 2, batches),
            (line, lines * line, 2 * lines * line),
            (self.plan.box_depth(self._precision) * terms, of_tile, 2, 1),
            self.plan.line_bytes(self._precision),
        )  # fmt: skip
