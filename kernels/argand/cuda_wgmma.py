"""Launches of the wgmma family: tensor maps and arguments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock

from argand import nvrtc
from argand.cuda_arrays import Layout, k_fast
from argand.cuda_kernel import BoundKernel
from argand.cuda_pack import Planes
from argand.cuda_tensor_map import ALIGNMENT, TensorMap, tensor_map
from argand.cuda_workspace import zeroed
from argand.device import Arch, Device
from argand.gemm_plan import PlanError
from argand.kernel_arguments import Arguments, arguments_dtype
from argand.pack_plan import pack_aside, pitch_of, planes_bytes
from argand.precision import Precision
from argand.wgmma_plan import (
    STORE_SIDE,
    WARP,
    WARPGROUP,
    WGMMA_ARGUMENTS,
    Division,
    WgmmaPlan,
    check_wgmma_plan,
    divide,
    wgmma_kernel_name,
    wgmma_source,
)

_DTYPE = arguments_dtype(WGMMA_ARGUMENTS)
_PACKING = ("y_pitch", "y_flip", "pack_lines", "pack_round", "y_line", "y_batch")
"""Arguments of packing on the way."""


def copyable(x: Layout) -> bool:
    """Whether the copy engine can read an operand: contiguous one way, aligned the other."""
    fast, slow = (x.column_stride, x.row_stride) if k_fast(x) else (x.row_stride, x.column_stride)
    aligned = all(stride * x.item % ALIGNMENT == 0 for stride in (slow, x.batch_stride))
    return fast == 1 and slow > 0 and x.batch_stride >= 0 and aligned and x.aligned >= ALIGNMENT


def staged_where_possible(
    plan: WgmmaPlan, precision: Precision, out: Layout, arch: Arch
) -> WgmmaPlan:
    """The plan, with results through the copy engine where it can write them so."""
    if plan.half_output or not copyable(out):
        return plan
    staged = replace(plan, staged=True, rows_fast=not k_fast(out))
    try:
        check_wgmma_plan(staged, precision, arch)
    except PlanError:  # no shared memory left for it, or tiles narrower than a box
        return plan
    return staged


@dataclass(frozen=True)
class WgmmaProblem:
    """Z = alpha X Y^T + beta C: rows (of X), columns (rows of Y) and k, in batches.

    ``x_batched`` and ``y_batched`` say whether each product has its own operand. ``flip_result``
    conjugates the product before alpha. k is cut into ``parts``; then there are ``parts`` times as
    many results, each the sum over its part.
    """

    rows: int
    columns: int
    k: int
    batch: int
    x_batched: bool
    y_batched: bool
    alpha: complex = 1
    beta: complex = 0
    flip_result: bool = False
    parts: int = 1


class WgmmaLaunch:
    """A kernel of the family for results of one layout.

    Args:
        precision, plan: the kernel; with storage ``planar`` the row operand is packed too.
        problem: the sizes.
        x: layout of an interleaved row operand that is `copyable`, None for a packed one.
        c: layout of C, out's where there is none.
        out: layout of the result, complex64, or uint32 pairs of 16 bits with ``half_output``.
        y: layout of a column operand that the plan packs on the way, which ``y_flip`` conjugates.
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
    ) -> None:
        plan = staged_where_possible(plan, precision, out, device.require_arch())
        self._precision, self._plan, self._problem, self._x = precision, plan, problem, x
        self._out = out
        shared_bytes = plan.shared_bytes(precision)
        kernel = nvrtc.load(
            wgmma_source(precision, plan), device.target, wgmma_kernel_name(precision, plan),
            shared_bytes,
        )  # fmt: skip
        row_tiles = -(-problem.rows // plan.block_m)
        tiles = row_tiles * -(-problem.columns // plan.block_n) * problem.batch * problem.parts
        most = self._blocks_at_once(tiles, device)
        steps = -(-problem.k // plan.depth)
        # Whoever cuts k into parts has done so to fill the card.
        division = (
            divide(tiles, most, steps, plan.depth) if problem.parts == 1
            else Division(min(tiles, most), tiles)
        )  # fmt: skip
        multiplying = plan.threads - WARPGROUP
        #: Bytes that sums of pieces take, and planes of what is packed on the way.
        self.nbytes = 4 * division.blocks * plan.block_n * multiplying if division.share else 0
        self._zeros = self._packed_at = 4 * division.blocks * multiplying // WARP
        self._planes_at, self._planes = self.nbytes, None
        packing = dict.fromkeys(_PACKING, 0)
        if plan.packs:
            assert y is not None
            batches = problem.batch if problem.y_batched else 1
            aside = pack_aside(plan, problem.rows, y.rows, y.columns, batches, division.blocks)
            pitch = pitch_of(y.columns)
            size = planes_bytes(precision, y.rows, y.columns, batches)
            self._planes = Planes(0, size, 0, y.rows, pitch, batches)
            self._zeros += 4 * aside.counters
            self.nbytes += size
            packing = {
                "y_pitch": pitch,
                "y_flip": y_flip,
                "pack_lines": aside.lines,
                "pack_round": aside.round,
                "y_line": y.row_stride,
                "y_batch": y.batch_stride,
            }
        # As neighbour_rows() of the kernel's plan.
        neighbours = (plan.storage != "planar" and not plan.k_fast) or plan.rows_fast
        arguments = Arguments(_DTYPE, {
            "c": 0, "out": 0, "x_unscale": 0, "y_unscale": 0,
            "rows": problem.rows, "columns": problem.columns, "k": problem.k,
            "batches": problem.batch, "x_batched": problem.x_batched,
            "y_batched": problem.y_batched,
            "pieces": 0, "ready": 0, "y_source": 0, "y_planes": 0, "packed": 0, **packing,
            "parts": problem.parts, "part_steps": -(-steps // problem.parts),
            "whole_tiles": division.whole, "split_tiles": division.split, "share": division.share,
            "c_row": c.row_stride, "c_column": c.column_stride, "c_batch": c.batch_stride,
            "out_row": out.row_stride, "out_column": out.column_stride,
            "out_batch": out.batch_stride,
            "alpha_re": problem.alpha.real, "alpha_im": problem.alpha.imag,
            "beta_re": problem.beta.real, "beta_im": problem.beta.imag,
            "flip_result": problem.flip_result,
            "row_pairs": neighbours and out.in_pairs(along_columns=False),
            "column_pairs": out.in_pairs(along_columns=True),
        })  # fmt: skip
        self._kernel = BoundKernel(
            kernel, division.blocks, plan.threads, arguments, maps=3, shared_bytes=shared_bytes
        )
        self._maps: dict[str, TensorMap] = {}
        self._lock = Lock()  # maps are moved from call to call

    def __call__(
        self, rows: int | Planes, columns: int | Planes, c: int, out: int, memory: int
    ) -> None:
        """Launch on these operands and addresses, ``memory`` being that of ``nbytes``.

        The column operand is an address where the plan packs it. c is not read where beta is 0.
        """
        members = {"c": c, "out": out}
        if self.nbytes:
            zeros = zeroed(self._zeros)
            members["pieces"] = memory
            members["ready"] = zeros
        planes = self._planes
        if planes is None:
            assert isinstance(columns, Planes)
            planes, y_at = columns, columns.address
            if planes.unscale:
                members["y_unscale"] = planes.unscale
        else:
            assert isinstance(columns, int)
            y_at = memory + self._planes_at
            members["packed"] = zeros + self._packed_at
            members["y_source"] = columns
            members["y_planes"] = y_at
        if isinstance(rows, Planes) and rows.unscale:
            members["x_unscale"] = rows.unscale
        with self._lock:
            x_map = (
                self._map("x", rows.address, rows) if isinstance(rows, Planes)
                else self._map("x", rows)
            )  # fmt: skip
            y_map = self._map("y", y_at, planes)
            # A kernel that stores directly does not look at the third map.
            out_map = self._map("out", out) if self._plan.staged else y_map
            self._kernel(members, (x_map.place, y_map.place, out_map.place))

    def _map(self, name: str, address: int, planes: Planes | None = None) -> TensorMap:
        """The tensor map of one of the kernel's three arrays, moved to where that lies now.

        Arrays of one launch differ in nothing else.
        """
        found = self._maps.get(name)
        if found is not None:
            found.move(address)
            return found
        if name == "out":
            found = self._out_map(address)
        elif planes is None:
            found = self._interleaved_map(address)
        else:
            plan = self._plan
            lines = plan.block_m if name == "x" else plan.block_n
            found = self._planes_map(address, planes, lines)
        self._maps[name] = found
        return found

    def _blocks_at_once(self, tiles: int, device: Device) -> int:
        """One on each multiprocessor, or fewer where that keeps operands in the cache.

        Blocks that share a product's operands read them at the same time only while no product is
        left half done by a wave; where several products' operands fill the cache, that is worth
        the multiprocessors that stand idle.
        """
        problem, cores = self._problem, device.cores
        of_product = tiles // problem.batch
        inside = 8 * problem.k * (problem.rows + problem.columns)
        if of_product >= cores or cores // of_product * inside < device.cache_bytes // 2:
            return cores
        return cores // of_product * of_product

    def _interleaved_map(self, address: int) -> TensorMap:
        x, plan = self._x, self._plan
        assert x is not None
        item = plan.x_item(self._precision)
        fast, slow, stride, box = (
            (x.columns, x.rows, x.row_stride, plan.block_m) if plan.k_fast
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
            (out.rows, out.columns, out.column_stride) if self._plan.rows_fast
            else (out.columns, out.rows, out.row_stride)
        )  # fmt: skip
        products = self._problem.batch * self._problem.parts
        return tensor_map(
            address, out.item, (fast, slow, products),
            (stride * out.item, (out.batch_stride or stride) * out.item),
            (STORE_SIDE, STORE_SIDE, 1), 128,
        )  # fmt: skip

    def _planes_map(self, address: int, x: Planes, lines: int) -> TensorMap:
        item = self._precision.operand.bytes
        line = x.pitch * item
        planes = 2 * self._precision.terms
        return tensor_map(
            address, item, (x.pitch, x.lines, planes, x.batches),
            (line, x.lines * line, planes * x.lines * line),
            (self._plan.depth, lines, planes, 1), self._plan.line_bytes(self._precision),
        )  # fmt: skip
