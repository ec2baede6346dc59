"""Exact products on a GPU, prepared for operands of one form: norms, residues, product, results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cupy

from argand.device import Device
from argand.gemm.base_address import BaseAddress
from argand.gemm.modular.heuristics import (
    choose_pieces,
    choose_plan,
    choose_slices,
    most_slices,
)
from argand.gemm.modular.kernel_sources import (
    DECODE_ARGUMENTS,
    DECODE_KERNEL,
    DECODE_ROWS,
    DECODE_WARPS,
    decode_bytes,
    decode_kernel_source,
)
from argand.gemm.modular.launch_order import KernelLaunch, dependencies
from argand.gemm.modular.operand_launch import GivenPlanes, OperandLaunch, bound
from argand.gemm.modular.pieces import most_workspace
from argand.gemm.modular.problem import ModularProblem, Piece
from argand.gemm.modular.product_launch import RESIDUES, PieceOperand, add_slices, product_launch
from argand.gemm.modular.product_plan import COLUMN_BLOCK
from argand.gemm.modular.proof import wrong_product
from argand.gemm.modular.proof_launch import ProofLaunch, begin_result
from argand.gemm.workspace import aligned
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.arguments import Address
from argand.runtime.launch.graph import LaunchSequence
from argand.runtime.launch.kernel import ArgumentUpdate
from argand.runtime.memory.workspace import call_memory
from argand.runtime.memory.workspace_limit import workspace_error

_DECODING_WARPS = 16
"""Warps of a multiprocessor that decode at a time."""


class ModularLaunch:
    """The launches of one problem. ``nbytes`` is the workspace of a call.

    It is at most ``limit`` bytes, by default those of `most_workspace`, unless the smallest pieces
    take more.

    Raises ValueError where k is too long for the moduli, PlanError where the device has no kernels,
    and WorkspaceError where the smallest pieces take more than is ``allowed``.
    """

    def __init__(
        self, problem: ModularProblem, device: Device, limit: int | None = None,
        allowed: int | None = None,
    ) -> None:  # fmt: skip
        self._problem, self._device, self._allowed = problem, device, allowed
        # Columns of B in planes that are packed.
        self._stored = -(-problem.b.rows // COLUMN_BLOCK) * COLUMN_BLOCK
        self.nbytes = 0
        self._a, self._b = self._operands(in_parts=False)
        limit = most_workspace(problem) if limit is None else limit
        #: Bytes of it that planes and residues may take.
        self._limit = limit - self.nbytes - problem.proof_bytes
        #: The parts that are computed one after another.
        self.pieces = choose_pieces(problem, device, self._limit)
        if self.pieces[0].k_parts > 1:
            self.nbytes = 0
            self._a, self._b = self._operands(in_parts=True)
            self._limit = limit - self.nbytes - problem.proof_bytes
        self._proof = self._prove() if problem.proved else None
        ordered = list(self._kernel_launches())
        #: The kernels of a call, one after the other.
        self.kernels = [launch.kernel for launch in ordered]
        self._addresses = [(launch.members, launch.maps) for launch in ordered]
        self._launches = LaunchSequence(self.kernels, self._updates, dependencies(ordered))

    def _operands(
        self, *, in_parts: bool
    ) -> tuple[OperandLaunch | GivenPlanes, OperandLaunch | GivenPlanes]:
        """Return the launches that encode A and B, or where their planes are packed already."""
        problem, device, reserve = self._problem, self._device, self._reserve
        return (
            GivenPlanes(problem, problem.a, BaseAddress.ROWS, problem.a.rows)
            if problem.a_packed
            else OperandLaunch(
                problem, problem.a, BaseAddress.ROWS, device, reserve,
                permuted=False, in_parts=in_parts,
            ),
            GivenPlanes(problem, problem.b, BaseAddress.COLUMNS, self._stored)
            if problem.b_packed
            else OperandLaunch(
                problem, problem.b, BaseAddress.COLUMNS, device, reserve,
                permuted=True, in_parts=in_parts,
            ),
        )  # fmt: skip

    def _updates(self, addresses: Sequence[int]) -> list[ArgumentUpdate]:
        return [
            kernel.argument_update(members, maps, addresses)
            for kernel, (members, maps) in zip(self.kernels, self._addresses, strict=True)
        ]

    def __call__(self, a: int, b: int, c: int, out: int) -> None:
        """Launch on these addresses; c is not read where beta is 0.

        Raises WrongProductError where a proof of the problem failed, for which it waits.
        """
        if kernel_trace.watching:
            kernel_trace.note(self.name)
        wrong, first = self.queue(a, b, c, out)
        if wrong:
            problem = self._problem
            rows = problem.batch * problem.a.rows
            raise wrong_product(wrong, rows, first, problem.proved or "row")

    def queue(self, a: int, b: int, c: int, out: int) -> tuple[int, int]:
        """Launch, without a name in records.

        Returns how many rows a proof, for which it waits, found wrong, and the first of them.
        """
        # Freed after the launches, it is reused in the stream's order.
        memory = call_memory(self.nbytes)
        stream = cupy.cuda.get_current_stream().ptr
        addresses = (a, b, c, out, memory.ptr, 0, 0, 0)
        if self._proof is None:
            self._launches(addresses, stream)
            return 0, 0
        result = begin_result()
        self._launches((*addresses, result.address), stream)
        return self._proof.wrong(result, stream)

    def _reserve(self, nbytes: int) -> Address:
        found = Address(BaseAddress.WORKSPACE, self.nbytes)
        self.nbytes += aligned(nbytes)
        return found

    def _prove(self) -> ProofLaunch:
        problem, b = self._problem, self._b
        # B' x covers all columns, of one product where several share A.
        whole = all(piece.columns == problem.b.rows for piece in self.pieces)
        own = problem.batch == 1 or problem.a.batch_stride != 0
        return ProofLaunch(
            problem, self._device, self._reserve,
            b_encodes=isinstance(b, OperandLaunch) and b.transposes, a_encodes=whole and own,
        )  # fmt: skip

    def _kernel_launches(self) -> Iterator[KernelLaunch]:
        """Yield the kernels of a call: norms, then residues, products and results of each piece."""
        problem, a, b, proof, pieces = self._problem, self._a, self._b, self._proof, self.pieces
        # The first piece is the largest: its slices are as many as the workspace has room for, and
        # its parts of k are those of the others.
        parts = problem.parts(pieces[0].k_parts)
        of_a, of_b, of_c = parts[0][1].piece_bytes(pieces[0])
        most = most_slices(problem, pieces[0], self._limit)
        plans = [choose_plan(parts[0][1], piece, self._device, most) for piece in pieces]
        slices = [
            choose_slices(parts[0][1], piece, self._device, plan, most)
            for piece, plan in zip(pieces, plans, strict=True)
        ]
        if pieces[0].plane_groups > 1:
            residues = self._reserve(problem.workspace_bytes(pieces[0]) - of_b)
            a_planes = Address(residues.base, residues.offset + problem.planes_offset(pieces[0]))
        else:
            residues, a_planes = self._reserve(of_c * max(slices)), self._reserve(of_a)
        b_planes = self._reserve(of_b)
        self._refuse()  # before thousands of launches are made
        #: The launch's name in records.
        self.name = self._name_of(plans[0].name, slices[0], len(parts))
        if proof is not None:
            yield proof.begin()
        for x in (a, b):
            if isinstance(x, OperandLaunch):
                yield from x.norms()
        before: Piece | None = None
        for piece, plan, split in zip(pieces, plans, slices, strict=True):
            for part in parts:
                yield from self._encode(piece, part, a_planes, b_planes, before)
                # A shorter last part may have fewer slices.
                count = choose_slices(part[1], piece, self._device, plan, split)
                for group in problem.plane_groups(piece):
                    yield product_launch(
                        part[1], self._device, plan, piece, count, group,
                        *self._planes(piece, a_planes, b_planes), residues, adds=part[0] > 0,
                    )  # fmt: skip
            if split > 1:
                yield add_slices(problem, self._device, piece, split, residues)
            yield self._decode(piece, residues)
            before = piece if len(parts) == 1 else None
        if proof is not None:
            yield from proof.end(a.exponents, b.exponents)

    def _name_of(self, plan: str, slices: int, parts: int) -> str:
        """Return the name of a launch: its moduli, its first plan, and how the product is cut."""
        groups = self.pieces[0].plane_groups
        cuts = {"slices of k": slices, "groups of planes": groups, "parts of k": parts}
        words = [f"{count} {what}" for what, count in cuts.items() if count > 1]
        return ", ".join([f"{self._problem.count} moduli", plan, *words])

    def _refuse(self) -> None:
        """Raise WorkspaceError where what was reserved is more than is allowed."""
        if self._allowed is not None and self.nbytes > self._allowed:
            what = f"an exact product of {self._problem.count} moduli, in the smallest pieces,"
            raise workspace_error(what, self.nbytes, self._allowed, "take fewer moduli")

    def _encode(
        self, piece: Piece, part: tuple[int, ModularProblem], a_planes: Address, b_planes: Address,
        before: Piece | None,
    ) -> Iterator[KernelLaunch]:  # fmt: skip
        """Yield the launches that encode what a piece has and the piece before it had not."""
        problem, a, b, proof = self._problem, self._a, self._b, self._proof
        product, count = piece.first_product, piece.products
        of_a, of_b = bool(problem.a.batch_stride), bool(problem.b.batch_stride)
        new_b = before is None or piece.columns_of(of_b) != before.columns_of(of_b)
        if new_b and isinstance(b, OperandLaunch):
            # Columns are encoded for each panel of rows, and each product that shares them.
            again = piece.first_row > 0 or (not of_b and product > 0)
            yield b.encode(
                product, count, piece.first_column, piece.columns, piece.padded, b_planes,
                None if proof is None or again else proof.of_b(product, part[0]), part,
            )  # fmt: skip
            if proof is not None and not again:
                yield from proof.image(product, count, part[0], b.exponents, b.name("planes"))
        new_a = before is None or piece.rows_of(of_a) != before.rows_of(of_a)
        overwritten = piece.plane_groups > 1
        if (new_a or overwritten) and isinstance(a, OperandLaunch):
            encode = a.encode(
                product, count, piece.first_row, piece.rows, piece.rows, a_planes,
                None if proof is None else proof.of_a(product, piece.first_row, part[0]),
                part,
            )  # fmt: skip
            if overwritten:  # planes are where the residues of the piece before are read
                encode = encode._replace(writes=(*encode.writes, RESIDUES))
            yield encode

    def _planes(self, piece: Piece, a: Address, b: Address) -> tuple[PieceOperand, PieceOperand]:
        """Return where a piece's planes are: in the workspace, or in what is packed."""
        problem, found = self._problem, []
        for x, batched, address, lines, stored, line in (
            (self._a, problem.a.batch_stride, a, piece.rows, problem.a.rows, piece.first_row),
            (self._b, problem.b.batch_stride, b, piece.padded, self._stored, piece.first_column),
        ):
            part: tuple[str, ...] = ()
            if isinstance(x, GivenPlanes):
                product = piece.first_product if batched else 0
                offset = (2 * problem.count * stored * product + line) * problem.pitch
                address = Address(x.planes_at.base, offset)
            else:
                stored, part = lines, (x.name("planes"),)
            found.append(PieceOperand(address, lines, stored, bool(batched), part))
        return found[0], found[1]

    def _decode(self, piece: Piece, residues: Address) -> KernelLaunch:
        """Return the launch that makes the results of a piece from its residues."""
        problem, out, a, b = self._problem, self._problem.out, self._a, self._b
        c = out if problem.c is None else problem.c
        columns = piece.padded // COLUMN_BLOCK * piece.products
        # Few rows per warp where the result is small, so that it fills the card twice.
        resident = 2 * _DECODING_WARPS * self._device.sm_count
        warp_rows = min(DECODE_ROWS, -(-piece.rows * columns // resident))
        warps = -(-piece.rows // warp_rows) * columns
        kernel = bound(
            self._device,
            decode_kernel_source(problem.dtype, problem.count, proved=self._proof is not None),
            DECODE_KERNEL, -(-warps // DECODE_WARPS), 32 * DECODE_WARPS, DECODE_ARGUMENTS,
            {
                "c_stride_m": c.row_stride, "c_stride_n": c.column_stride,
                "c_stride_batch": c.batch_stride, "out_stride_m": out.row_stride,
                "out_stride_n": out.column_stride, "out_stride_batch": out.batch_stride,
                "m": piece.rows, "n": piece.columns, "batches": piece.products,
                "a_lines": a.lines, "b_lines": b.lines, "first_column": piece.first_column,
                "warp_rows": warp_rows, "scaled": problem.alpha != 1,
                "has_c": problem.c is not None,
                "pairs": problem.dtype == "complex64" and out.in_pairs(along_columns=True),
                "alpha_re": problem.alpha.real, "alpha_im": problem.alpha.imag,
                "beta_re": problem.beta.real, "beta_im": problem.beta.imag,
            },
            decode_bytes(problem.count, proved=self._proof is not None),
        )  # fmt: skip
        first, row = piece.first_product, piece.first_row
        base, offset = a.exponents_of(first)
        proof = self._proof and self._proof.of_decode(first, row, piece.first_column)
        members = {
            "residues": residues, "a_exponents": Address(base, offset + 4 * row),
            "b_exponents": b.exponents_of(first),
            "c": Address(BaseAddress.C, (first * c.batch_stride + row * c.row_stride) * c.item),
            "out": Address(
                BaseAddress.OUT, (first * out.batch_stride + row * out.row_stride) * out.item
            ),
            **(proof.members if proof else {}),
        }  # fmt: skip
        reads, writes = (proof.reads, proof.writes) if proof else ((), ())
        return KernelLaunch(kernel, members, reads=(RESIDUES, *reads), writes=writes)
