"""Exact products on a GPU, prepared for operands of one form: norms, residues, product, results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import cupy

from argand.device import Device
from argand.gemm.modular.kernel_sources import (
    DECODE_ARGUMENTS,
    DECODE_KERNEL,
    PRODUCT_ARGUMENTS,
    PRODUCT_KERNEL,
    SLICE_ARGUMENTS,
    SLICE_KERNEL,
    decode_kernel_source,
    product_source,
    slice_source,
)
from argand.gemm.modular.launch_order import KernelLaunch, dependencies
from argand.gemm.modular.operand_launch import OperandLaunch, PackedOperand, bound
from argand.gemm.modular.pieces import (
    ModularProblem,
    Piece,
    choose_plan,
    choose_slices,
    pieces_of,
    workspace_limit,
)
from argand.gemm.modular.product_plan import (
    COLUMN_BLOCK,
    DECODE_ROWS,
    DECODE_WARPS,
    TILE_K,
    WARPS,
    ResiduePlan,
    decode_bytes,
)
from argand.gemm.modular.proof_launch import PROOF, SUMS, ProofLaunch
from argand.runtime import kernel_trace as launches
from argand.runtime.arguments import Address, Arguments, BaseAddress, arguments_dtype
from argand.runtime.graph import LaunchSequence
from argand.runtime.kernel import ArgumentUpdate, BoundKernel
from argand.runtime.loading import PendingKernel
from argand.runtime.tensor_map import TensorMap, tensor_map
from argand.runtime.workspace import call_memory

_DECODING_WARPS = 16
"""Warps of a multiprocessor that decode at a time."""
_RESIDUES = "residues"


class ModularLaunch:
    """The launches of one problem. ``nbytes`` is the workspace of a call.

    Raises ValueError where k is too long for the moduli, PlanError where the device has no kernels.
    """

    def __init__(self, problem: ModularProblem, device: Device) -> None:
        self._problem, self._device = problem, device
        self.nbytes = 0
        # Columns of B in planes that are packed.
        self._stored = -(-problem.b.rows // COLUMN_BLOCK) * COLUMN_BLOCK
        self._a = (
            PackedOperand(problem, problem.a, BaseAddress.ROWS, problem.a.rows)
            if problem.a_packed
            else OperandLaunch(
                problem, problem.a, BaseAddress.ROWS, device, self._reserve, permuted=False
            )
        )
        self._b = (
            PackedOperand(problem, problem.b, BaseAddress.COLUMNS, self._stored)
            if problem.b_packed
            else OperandLaunch(
                problem, problem.b, BaseAddress.COLUMNS, device, self._reserve, permuted=True
            )
        )
        self._proof = ProofLaunch(problem, device, self._reserve) if problem.proved else None
        ordered = list(self._kernel_launches())
        #: The kernels of a call, one after the other.
        self.kernels = [launch.kernel for launch in ordered]
        self._addresses = [(launch.members, launch.maps) for launch in ordered]
        self._launches = LaunchSequence(self.kernels, self._updates, dependencies(ordered))

    def _updates(self, addresses: Sequence[int]) -> list[ArgumentUpdate]:
        return [
            kernel.argument_update(members, maps, addresses)
            for kernel, (members, maps) in zip(self.kernels, self._addresses, strict=True)
        ]

    def __call__(self, a: int, b: int, c: int, out: int) -> None:
        """Launch on these addresses; c is not read where beta is 0.

        Raises WrongProductError where a proof of the problem failed, for which it waits.
        """
        if launches.watching:
            launches.note(self.name)
        stream = cupy.cuda.get_current_stream().ptr
        # Freed after the launches, it is reused in the stream's order.
        memory = call_memory(self.nbytes)
        addresses = (a, b, c, out, memory.ptr, 0, 0, 0)
        if self._proof is None:
            self._launches(addresses, stream)
        else:
            self._proof.write_key(memory.ptr, stream)
            self._launches(addresses, stream)
            self._proof.check(memory.ptr, stream)

    def _reserve(self, nbytes: int) -> Address:
        found = Address(BaseAddress.MEMORY, self.nbytes)
        self.nbytes += -(-nbytes // 256) * 256
        return found

    def _kernel_launches(self) -> Iterator[KernelLaunch]:
        problem, a, b = self._problem, self._a, self._b
        limit = workspace_limit(problem)
        pieces = pieces_of(problem, limit)
        of_a, of_b, of_c = problem.plane_bytes()
        a_products = pieces[0].products if problem.a.batch_stride else 1
        b_products = pieces[0].products if problem.b.batch_stride else 1
        a_planes = self._reserve(of_a * a_products)
        b_planes = self._reserve(of_b * b_products * pieces[0].padded)
        # The first piece is the largest: its slices are as many as the workspace has room for.
        nbytes = of_c * pieces[0].products * pieces[0].padded
        most = (limit - of_a * a_products - of_b * b_products * pieces[0].padded) // nbytes
        plans = [choose_plan(problem, piece, self._device, most) for piece in pieces]
        slices = [
            choose_slices(problem, piece, self._device, plan, most)
            for piece, plan in zip(pieces, plans, strict=True)
        ]
        residues = self._reserve(nbytes * max(slices))
        #: The launch's name in records.
        self.name = f"{problem.count} moduli, {plans[0].name()}"
        if slices[0] > 1:
            self.name += f", {slices[0]} slices of k"
        if self._proof is not None:
            yield self._proof.begin()
        for x in (a, b):
            if isinstance(x, OperandLaunch):
                yield from x.norms()
        for number, (piece, plan, split) in enumerate(zip(pieces, plans, slices, strict=True)):
            first, count = piece.first_product, piece.products
            new_a = number == 0 or (problem.a.batch_stride and piece.first_column == 0)
            if new_a and isinstance(a, OperandLaunch):
                yield a.encode(first, count, 0, problem.a.rows, problem.a.rows, a_planes)
            new_b = number == 0 or problem.b.batch_stride or piece.columns < problem.b.rows
            if new_b and isinstance(b, OperandLaunch):
                yield b.encode(
                    first, count, piece.first_column, piece.columns, piece.padded, b_planes
                )
            yield self._product(
                plan, piece, split, *self._planes(piece, a_planes, b_planes), residues
            )
            if split > 1:
                yield self._add_slices(piece, split, residues)
            yield self._decode(piece, residues)
        if self._proof is not None:
            sums = tuple(f"{SUMS} {x.first_product} {x.first_column}" for x in pieces)
            yield from self._proof.end(a.exponents, b.exponents, sums)

    def _planes(self, piece: Piece, a: Address, b: Address) -> tuple[Address, Address]:
        """Return where a piece's planes begin: in the workspace, or in what is packed."""
        problem, found = self._problem, []
        for x, batched, address, stored, line in (
            (self._a, problem.a.batch_stride, a, problem.a.rows, 0),
            (self._b, problem.b.batch_stride, b, self._stored, piece.first_column),
        ):
            if isinstance(x, PackedOperand):
                product = piece.first_product if batched else 0
                lines = 2 * problem.count * stored * product + line
                address = Address(x.planes_at.base, lines * problem.pitch)
            found.append(address)
        return found[0], found[1]

    def _product(
        self, plan: ResiduePlan, piece: Piece, slices: int, a: Address, b: Address,
        residues: Address,
    ) -> KernelLaunch:  # fmt: skip
        problem = self._problem
        rows, planes = problem.a.rows, 2 * problem.count
        tiles_m, tiles_n = -(-rows // plan.block_m), -(-piece.padded // plan.block_n)
        tiles = tiles_m * tiles_n * planes * piece.products * slices
        k_tiles = problem.pitch // TILE_K
        values = {
            "a": 0, "b": 0, "residues": 0, "m": rows, "n": piece.padded,
            "slice_bytes": planes * piece.products * rows * piece.padded, "k_tiles": k_tiles,
            "slice_tiles": -(-k_tiles // slices), "slices": slices, "planes": planes,
            "a_batched": problem.a.batch_stride != 0, "b_batched": problem.b.batch_stride != 0,
            "tiles_m": tiles_m, "tiles_n": tiles_n, "tiles": tiles,
        }  # fmt: skip
        a_lines, b_lines = rows, self._stored if problem.b_packed else piece.padded
        values |= {"a_plane": a_lines * problem.pitch, "b_plane": b_lines * problem.pitch}
        wgmma = plan.family == "wgmma"
        kernel = PendingKernel(
            product_source(plan), self._device.target, f"modular_{PRODUCT_KERNEL}",
            plan.shared_bytes,
        )  # fmt: skip
        maps = [
            _PlaneMap(
                problem.pitch, lines, stored, planes * (piece.products if batched else 1), box
            )
            for lines, stored, batched, box in (
                (rows, a_lines, problem.a.batch_stride, plan.block_m),
                (piece.padded, b_lines, problem.b.batch_stride, plan.block_n),
            )
        ]
        launch = BoundKernel(
            kernel, min(tiles, self._device.sm_count) if wgmma else tiles, plan.threads,
            Arguments(arguments_dtype(PRODUCT_ARGUMENTS), values),
            maps=maps if wgmma else (), shared_bytes=plan.shared_bytes,
        )  # fmt: skip
        reads = tuple(x.name("planes") for x in (self._a, self._b) if isinstance(x, OperandLaunch))
        members = {"a": a, "b": b, "residues": residues}
        return KernelLaunch(launch, members, (a, b) if wgmma else (), reads, (_RESIDUES,))

    def _add_slices(self, piece: Piece, slices: int, residues: Address) -> KernelLaunch:
        plane, planes = self._problem.a.rows * piece.padded, 2 * self._problem.count
        nbytes, threads = plane * planes * piece.products, 32 * WARPS
        kernel = bound(
            self._device, slice_source(), SLICE_KERNEL, -(-nbytes // (16 * threads)), threads,
            SLICE_ARGUMENTS,
            {"slice_bytes": nbytes, "plane_bytes": plane, "slices": slices, "planes": planes},
        )  # fmt: skip
        return KernelLaunch(kernel, {"residues": residues}, writes=(_RESIDUES,))

    def _decode(self, piece: Piece, residues: Address) -> KernelLaunch:
        problem, out, a, b = self._problem, self._problem.out, self._a, self._b
        c = out if problem.c is None else problem.c
        columns = piece.padded // COLUMN_BLOCK * piece.products
        # Few rows a warp where the result is small, so that it fills the card twice.
        resident = 2 * _DECODING_WARPS * self._device.sm_count
        warp_rows = min(DECODE_ROWS, -(-out.rows * columns // resident))
        warps = -(-out.rows // warp_rows) * columns
        kernel = bound(
            self._device,
            decode_kernel_source(problem.dtype, problem.count, proved=self._proof is not None),
            DECODE_KERNEL, -(-warps // DECODE_WARPS), 32 * DECODE_WARPS, DECODE_ARGUMENTS,
            {
                "c_stride_m": c.row_stride, "c_stride_n": c.column_stride,
                "c_stride_batch": c.batch_stride, "out_stride_m": out.row_stride,
                "out_stride_n": out.column_stride, "out_stride_batch": out.batch_stride,
                "m": out.rows, "n": piece.columns, "batches": piece.products,
                "a_lines": a.lines, "b_lines": b.lines, "first_column": piece.first_column,
                "warp_rows": warp_rows, "scaled": problem.alpha != 1,
                "has_c": problem.c is not None,
                "pairs": problem.dtype == "complex64" and out.in_pairs(along_columns=True),
                "alpha_re": problem.alpha.real, "alpha_im": problem.alpha.imag,
                "beta_re": problem.beta.real, "beta_im": problem.beta.imag,
            },
            decode_bytes(problem.count, proved=self._proof is not None),
        )  # fmt: skip
        first = piece.first_product
        return KernelLaunch(kernel, {
            "residues": residues, "a_exponents": a.exponents_of(first),
            "b_exponents": b.exponents_of(first),
            "c": Address(BaseAddress.C, first * c.batch_stride * c.item),
            "out": Address(BaseAddress.OUT, first * out.batch_stride * out.item),
            **({} if self._proof is None else self._proof.of_decode(first)),
        }, reads=(_RESIDUES, PROOF), writes=(f"{SUMS} {first} {piece.first_column}",))  # fmt: skip


@dataclass(frozen=True)
class _PlaneMap:
    """Makes the tensor map of so many lines of ``pitch`` bytes of planes of ``stored`` lines."""

    pitch: int
    lines: int
    stored: int
    planes: int
    box: int

    def __call__(self, address: int) -> TensorMap:
        return tensor_map(
            address, 1, (self.pitch, self.lines, self.planes),
            (self.pitch, self.pitch * self.stored), (TILE_K, self.box, 1), TILE_K,
        )  # fmt: skip


@lru_cache(maxsize=256)
def prepared(problem: ModularProblem, device: Device) -> ModularLaunch:
    """Return the launches of a problem on a device, made once."""
    return ModularLaunch(problem, device)
