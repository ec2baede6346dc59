"""Launches of the wgmma family: their arguments; `gemm.sm90.maps` makes the tensor maps."""

from __future__ import annotations

from argand.device import Device
from argand.gemm.base_address import BaseAddress
from argand.gemm.linear_combination import linear_combination
from argand.gemm.pack.plan import pitch_of, planes_bytes
from argand.gemm.sm90.fused_pack import plan_fused_pack
from argand.gemm.sm90.launch_plan import plan_launch
from argand.gemm.sm90.maps import WgmmaMaps
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.problem import WgmmaLayouts, WgmmaProblem
from argand.gemm.sm90.scheduler import CallWorkspace, Tiles
from argand.gemm.sm90.source import WGMMA_ARGUMENTS, wgmma_kernel_name, wgmma_source
from argand.gemm.sm90.throttle import find_throttle
from argand.multiprocessor import WARP, WARPGROUP
from argand.precision import Precision
from argand.runtime.calls.layout import Layout
from argand.runtime.compile.loading import PendingKernel
from argand.runtime.launch.arguments import Address, Arguments, arguments_dtype
from argand.runtime.launch.kernel import BoundKernel
from argand.runtime.launch.tensor_map import ALIGNMENT

_DTYPE = arguments_dtype(WGMMA_ARGUMENTS)
_FUSED_PACK_ARGUMENTS = (
    "y_pitch", "pack_conjugate", "pack_rows", "panels_per_wave", "pack_maximum_lead",
    "y_stride_n", "y_stride_batch",
)  # fmt: skip
"""Arguments that only fused packing reads."""
_MAX_BYTES_TO_OVERLAP = 128 << 20
"""Bytes of operands and results of a product that begins while its operands are packed."""
_THROTTLE_BYTES = 8
"""Two counters of the CTA throttle."""


class WgmmaLaunch:
    """A kernel of the family for results of one layout.

    Args:
        precision, plan: the kernel; with storage ``planar`` the row operand is packed too.
        problem: the sizes.
        layouts: layouts of arrays that are read and written in place.
        workspace: the call's memory that is taken already, and what partial tiles may take.
        device: where it runs.
        pack_conjugate: fused packing conjugates the column operand.
        begins_early: the kernel before packs operands of this call, so the first of these waits
            for it only where it reads what that one writes.
    """

    def __init__(
        self,
        precision: Precision,
        plan: WgmmaPlan,
        problem: WgmmaProblem,
        layouts: WgmmaLayouts,
        workspace: CallWorkspace,
        device: Device,
        *,
        pack_conjugate: bool = False,
        begins_early: bool = False,
    ) -> None:
        self._precision, self._problem, self._out = precision, problem, layouts.out
        planned = plan_launch(plan, precision, problem, layouts.out, device, workspace)
        schedule = planned.schedule
        #: The plan with its epilogue.
        self.plan = planned.plan
        #: The division of tiles among blocks.
        self.division = schedule.division
        base = workspace.planes_bytes
        #: Bytes of workspace for partial tiles, planes of fused packing and spills beside C.
        self.nbytes = schedule.nbytes
        self._partials_offset = base if schedule.planes_offset is None else schedule.planes_offset
        self._planes_offset = base + self.nbytes
        consumer_warps = (self.plan.threads - WARPGROUP) // WARP
        self._packed_counts_offset = 4 * self.division.blocks * consumer_warps
        #: Bytes of counters that a call finds zero and leaves zero.
        self.counters = self._packed_counts_offset if self.division.stream_k_tiles else 0
        packing = self._reserve_packing(layouts.y, pack_conjugate)
        throttle = self._reserve_throttle(planned.tiles, device)
        spill = self._reserve_spill(base)
        values = self._arguments(layouts.c, spill) | packing | throttle
        shared_bytes = self.plan.shared_bytes(precision)
        self._maps = WgmmaMaps(precision, self.plan, problem, layouts)
        kernel = PendingKernel(
            wgmma_source(precision, self.plan), device.target,
            wgmma_kernel_name(precision, self.plan), shared_bytes,
        )  # fmt: skip
        launches = schedule.launches()
        early = [begins_early, *(False for _ in launches[1:])]
        #: The launches of a call.
        self.kernels = [
            BoundKernel(
                kernel, blocks, self.plan.threads,
                Arguments(_DTYPE, values | changed | {"begins_early": first}),
                maps=self._maps.makers, shared_bytes=shared_bytes, overlaps=self._overlaps,
            )
            for (blocks, changed), first in zip(launches, early, strict=True)
        ]  # fmt: skip

    @property
    def _overlaps(self) -> bool:
        """Whether the kernel begins while the one before ends.

        A microsecond less is nothing for large products, and some of them take longer then.
        """
        x = self._problem
        numbers = x.batch * (x.rows * x.k + x.columns * x.k + x.rows * x.columns)
        return not self.plan.fused_pack and 8 * numbers <= _MAX_BYTES_TO_OVERLAP

    def _reserve_packing(self, y: Layout | None, pack_conjugate: bool) -> dict[str, int]:
        """Reserve planes and counters of fused packing, and return its arguments."""
        plan, problem = self.plan, self._problem
        if not plan.fused_pack:
            return dict.fromkeys(_FUSED_PACK_ARGUMENTS, 0)
        assert y is not None
        batches = problem.batch if problem.y_batched else 1
        blocks = self.division.blocks
        fused = plan_fused_pack(plan, problem.rows, y.rows, y.columns, batches, blocks)
        self.counters = self._packed_counts_offset + 4 * fused.counters
        self.nbytes += planes_bytes(self._precision, y.rows, y.columns, batches)
        return {
            "y_pitch": pitch_of(y.columns),
            "pack_conjugate": pack_conjugate,
            "pack_rows": fused.rows,
            "panels_per_wave": fused.panels_per_wave,
            "pack_maximum_lead": fused.maximum_lead,
            "y_stride_n": y.row_stride,
            "y_stride_batch": y.batch_stride,
        }

    def _reserve_throttle(self, tiles: Tiles, device: Device) -> dict[str, int]:
        """Reserve the counters of the CTA throttle, and return its arguments."""
        self._throttle_offset = self.counters
        interval, lead = 0, 0
        if self._problem.split_k_slices == 1:  # else tiles of one wave may differ in length
            interval, lead = find_throttle(
                self.plan, self._precision, tiles, self.division, self._problem.k,
                device.cache_bytes,
            )  # fmt: skip
        self.counters += _THROTTLE_BYTES * (interval > 0)
        return {"throttle_interval": interval, "maximum_lead": lead}

    def _reserve_spill(self, base: int) -> Layout:
        """Return where accumulators spill to: the result, or workspace beside a C that is added."""
        out, problem = self._out, self._problem
        self._spill_offset: int | None = None
        slice_k = self._k_tiles_per_slice * self.plan.block_k
        holds = problem.beta == 0 and not self.plan.power
        if holds or not self.plan.spills_accumulators(self._precision, slice_k):
            return out
        # C may lie where the result will be, and the epilogue still reads it; squares are shorter.
        self._spill_offset = -(-(base + self.nbytes) // ALIGNMENT) * ALIGNMENT
        self.nbytes = self._spill_offset - base + 8 * problem.batch * out.rows * out.columns
        return Layout(out.rows, out.columns, out.columns, 1, out.rows * out.columns, 8, 32)

    @property
    def _num_k_tiles(self) -> int:
        return -(-self._problem.k // self.plan.block_k)

    @property
    def _k_tiles_per_slice(self) -> int:
        return -(-self._num_k_tiles // self._problem.split_k_slices)

    def _arguments(self, c: Layout, spill: Layout) -> dict[str, float]:
        """Return the kernel's arguments with addresses of 0, without packing and throttle."""
        problem, division, out = self._problem, self.division, self._out
        return {
            "c": 0, "out": 0, "spill": 0, "x_descale": 0, "y_descale": 0,
            "m": problem.rows, "n": problem.columns, "k": problem.k,
            "batches": problem.batch, "x_batched": problem.x_batched,
            "y_batched": problem.y_batched,
            "partials": 0, "partials_ready": 0, "y_source": 0, "y_planes": 0, "packed_counts": 0,
            "throttle": 0, "begins_early": 0,
            "split_k_slices": problem.split_k_slices,
            "k_tiles_per_slice": self._k_tiles_per_slice,
            "first_tile": 0, "data_parallel_tiles": division.data_parallel_tiles,
            "stream_k_tiles": division.stream_k_tiles,
            "k_tiles_per_block": division.k_tiles_per_block,
            "aligned_period": division.aligned_period(self._num_k_tiles),
            "c_stride_m": c.row_stride, "c_stride_n": c.column_stride,
            "c_stride_batch": c.batch_stride,
            "out_stride_m": out.row_stride, "out_stride_n": out.column_stride,
            "out_stride_batch": out.batch_stride,
            "spill_stride_m": spill.row_stride, "spill_stride_n": spill.column_stride,
            "spill_stride_batch": spill.batch_stride,
            **linear_combination(problem.alpha, problem.beta),
            "conjugate_result": problem.conjugate_result,
            "store_pairs_m": self.plan.adjacent_rows and out.in_pairs(along_columns=False),
            "store_pairs_n": out.in_pairs(along_columns=True),
            "spill_pairs_n": spill.in_pairs(along_columns=True),
        }  # fmt: skip

    def addresses(
        self, rows: Address, columns: Address, c: Address, out: Address,
        descale: tuple[Address, Address] | None = None,
    ) -> tuple[dict[str, Address], tuple[Address, ...]]:  # fmt: skip
        """Return the addresses in the arguments of ``kernels``, and those of the tensor maps.

        The launch uses ``nbytes`` of the call's workspace after its planes, and ``counters`` bytes
        of the zeroed workspace, which it leaves zero. ``descale`` are the factors that scale rows
        and columns back. The column operand is in planes unless the plan packs it. c is not read
        where beta is 0.
        """
        members = {
            "c": c, "out": out, "spill": out,
            "partials": Address(BaseAddress.WORKSPACE, self._partials_offset),
            "partials_ready": Address(BaseAddress.COUNTERS),
            "packed_counts": Address(BaseAddress.COUNTERS, self._packed_counts_offset),
            "throttle": Address(BaseAddress.COUNTERS, self._throttle_offset),
        }  # fmt: skip
        if self.plan.fused_pack:
            members["y_source"] = columns
            columns = members["y_planes"] = Address(BaseAddress.WORKSPACE, self._planes_offset)
            if self.plan.conjugate_y:
                rows = columns
        if self._spill_offset is not None:
            members["spill"] = Address(BaseAddress.WORKSPACE, self._spill_offset)
        if descale is not None:
            members["x_descale"], members["y_descale"] = descale
        return members, self._maps.addresses(rows, columns, out)
