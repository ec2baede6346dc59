"""Launches that multiply planes of residues, and add the residues of split-K slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from argand.device import Device
from argand.gemm.modular.encode_plan import WARPS
from argand.gemm.modular.kernel_sources import (
    PRODUCT_ARGUMENTS,
    PRODUCT_KERNEL,
    SLICE_ARGUMENTS,
    SLICE_KERNEL,
    product_source,
    slice_source,
)
from argand.gemm.modular.launch_order import KernelLaunch
from argand.gemm.modular.operand_launch import bound
from argand.gemm.modular.problem import ModularProblem, Piece
from argand.gemm.modular.product_plan import BLOCK_K, ResiduePlan
from argand.runtime.compile.loading import PendingKernel
from argand.runtime.launch.arguments import Address, Arguments, arguments_dtype
from argand.runtime.launch.kernel import BoundKernel
from argand.runtime.launch.tensor_map import TensorMap, tensor_map
from argand.runtime.plan import PlanError

RESIDUES = "residues"
"""The name among launches of what products write."""


class PieceOperand(NamedTuple):
    """The place of the planes of a piece's operand in memory.

    ``lines`` of the ``stored`` ones of each plane are the piece's; ``batched`` says whether each
    product has its own; ``parts`` name what encoding writes, among launches.
    """

    at: Address
    lines: int
    stored: int
    batched: bool
    parts: tuple[str, ...]


def product_launch(
    problem: ModularProblem, device: Device, plan: ResiduePlan, piece: Piece, slices: int,
    group: tuple[int, int], a: PieceOperand, b: PieceOperand, residues: Address, *,
    adds: bool = False,
) -> KernelLaunch:  # fmt: skip
    """Return the launch that multiplies a group of planes of a piece in a number of slices of k.

    ``group`` is the first of them and their number. With ``adds`` their residues are added to those
    of an earlier part of k.

    Raises PlanError where the plan holds columns of a shorter k, and does not split it.
    """
    if not plan.takes(problem.pitch // BLOCK_K, slices):
        raise PlanError(
            f"{plan.name} takes k up to {plan.resident_tiles * BLOCK_K} in one slice, got "
            f"{problem.a.columns} in {slices}; take another plan"
        )
    first, planes = group
    tiles_m, tiles_n = -(-a.lines // plan.block_m), -(-b.lines // plan.block_n)
    tiles = tiles_m * tiles_n * planes * piece.products * slices
    k_tiles = problem.pitch // BLOCK_K
    values = {
        "a": 0, "b": 0, "residues": 0, "m": a.lines, "n": b.lines,
        "slice_bytes": planes * piece.products * a.lines * b.lines, "num_k_tiles": k_tiles,
        "k_tiles_per_slice": -(-k_tiles // slices), "split_k_slices": slices, "planes": planes,
        "first_plane": first, "a_batched": a.batched, "b_batched": b.batched,
        "tiles_m": tiles_m, "tiles_n": tiles_n, "tiles": tiles,
        "a_plane": a.stored * problem.pitch, "b_plane": b.stored * problem.pitch,
    }  # fmt: skip
    wgmma = plan.family == "wgmma"
    kernel = PendingKernel(
        product_source(plan, adds=adds),
        device.target,
        f"modular_{PRODUCT_KERNEL}",
        plan.shared_bytes,
    )
    maps = [
        _plane_map(
            problem.pitch, x.lines, x.stored, planes * (piece.products if x.batched else 1), box
        )
        for x, box in ((a, plan.block_m), (b, plan.block_n))
    ]
    launch = BoundKernel(
        kernel, min(tiles, device.sm_count) if wgmma else tiles, plan.threads,
        Arguments(arguments_dtype(PRODUCT_ARGUMENTS), values),
        maps=maps if wgmma else (), shared_bytes=plan.shared_bytes,
    )  # fmt: skip
    a_at, b_at = (
        Address(x.at.base, x.at.offset + first * x.stored * problem.pitch) for x in (a, b)
    )
    target = Address(residues.base, residues.offset + first * a.lines * b.lines)
    members = {"a": a_at, "b": b_at, "residues": target}
    return KernelLaunch(
        launch, members, (a_at, b_at) if wgmma else (), (*a.parts, *b.parts), (RESIDUES,)
    )


def add_slices(
    problem: ModularProblem, device: Device, piece: Piece, slices: int, residues: Address
) -> KernelLaunch:
    """Return the launch that adds the residues of slices into those of the first one."""
    plane, planes = piece.rows * piece.padded, 2 * problem.count
    nbytes = planes * piece.products * plane
    threads = 32 * WARPS
    kernel = bound(
        device, slice_source(), SLICE_KERNEL, -(-nbytes // (16 * threads)), threads,
        SLICE_ARGUMENTS,
        {"slice_bytes": nbytes, "plane_bytes": plane, "split_k_slices": slices, "planes": planes},
    )  # fmt: skip
    return KernelLaunch(kernel, {"residues": residues}, writes=(RESIDUES,))


def _plane_map(
    pitch: int, lines: int, stored: int, planes: int, box: int
) -> Callable[[int], TensorMap]:
    """Return a function that makes the tensor map of ``lines`` of the ``stored`` ones of planes.

    A line has ``pitch`` bytes; a box has the k of a stage and ``box`` lines.
    """

    def make(address: int) -> TensorMap:
        return tensor_map(
            address, 1, (pitch, lines, planes), (pitch, pitch * stored), (BLOCK_K, box, 1), BLOCK_K
        )

    return make
