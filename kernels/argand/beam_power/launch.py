"""The launches of one form of beam power: weights are packed, then multiplied and detected."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cupy

from argand.beam_power.plan import (
    BEAM_POWER_ARGUMENTS,
    DEPTH,
    PACK_THREADS,
    ROW_TILE,
    SAMPLE_BYTES,
    WEIGHT_ARGUMENTS,
    BeamPowerPlan,
    Samples,
    TimeTiles,
    beam_power_source,
    check_plan,
    choose_plan,
    kernel_name,
    pack_name,
    pack_source,
    time_tiles,
)
from argand.beam_power.problem import BeamPowerProblem
from argand.device import Device
from argand.precision import Precision
from argand.runtime import kernel_trace as launches
from argand.runtime.arguments import Address, Arguments, BaseAddress, arguments_dtype
from argand.runtime.graph import LaunchSequence
from argand.runtime.kernel import BoundKernel
from argand.runtime.loading import PendingKernel

_VECTOR = 16
_LARGEST_GRID = 2**31 - 1
_MOST_BLOCK_TILES = 256
_TILES_OF_A_START = 0.5
"""Time in which a block fills its ring, in tiles."""


@dataclass(frozen=True)
class KernelForm:
    """A call for operands at any address.

    Attributes:
        problem: the sizes.
        precision: at which the kernel computes (`gpu.form_of`).
        samples: how they lie in memory, contiguous along time.
        weights_batched: whether each product has weights of its own.
        stride_antenna, stride_batch: of samples, in complex numbers.
        aligned: whether samples begin at 16 bytes.
        plan: whose sizes are taken, None for the default.
    """

    problem: BeamPowerProblem
    precision: Precision
    samples: Samples
    weights_batched: bool
    stride_antenna: int
    stride_batch: int
    aligned: bool
    plan: BeamPowerPlan | None = None


class BeamPowerLaunch:
    """The launches of a form. ``slices`` above 1 says that sums are of so many parts of a bin."""

    def __init__(self, form: KernelForm, device: Device) -> None:
        problem, precision = form.problem, form.precision
        self.plan, tiles = _planned(form, device)
        self.slices = tiles.slices
        check_plan(self.plan, precision, device.require_arch())
        plan = self.plan
        chunks = -(-problem.antennas // DEPTH[form.samples])
        steps = chunks * DEPTH[form.samples] // precision.operand.mma_k
        row_tiles = -(-problem.beams // plan.beams) * plan.beams // ROW_TILE
        matrices = problem.batch * problem.polarizations if form.weights_batched else 1
        fragments = matrices * row_tiles * steps * 2 * precision.terms * 32 * 16
        self._nbytes = fragments + 4 * matrices * row_tiles * ROW_TILE
        count = -(-problem.bins // tiles.bins) * tiles.slices
        beam_blocks = row_tiles * ROW_TILE // plan.beams
        block_tiles = _block_tiles(
            count, problem.batch * beam_blocks, device.sm_count * plan.blocks
        )
        blocks = problem.batch * beam_blocks * -(-count // block_tiles)
        if max(blocks, matrices * row_tiles) > _LARGEST_GRID:
            raise ValueError(f"leading axes, beams and bins take {blocks} blocks, too many")
        pack = BoundKernel(
            PendingKernel(pack_source(precision), device.target, pack_name(precision)),
            matrices * row_tiles, PACK_THREADS,
            Arguments(arguments_dtype(WEIGHT_ARGUMENTS), {
                "weights": 0, "fragments": 0, "descales": 0, "beams": problem.beams,
                "antennas": problem.antennas, "row_tiles": row_tiles, "steps": steps,
            }),
        )  # fmt: skip
        power = BoundKernel(
            PendingKernel(
                beam_power_source(plan, precision), device.target, kernel_name(plan, precision),
                plan.shared_bytes,
            ),
            blocks, plan.threads,
            Arguments(arguments_dtype(BEAM_POWER_ARGUMENTS), {
                "fragments": 0, "descales": 0, "samples": 0, "power": 0,
                "stride_antenna": form.stride_antenna, "stride_batch": form.stride_batch,
                "weights_batched": form.weights_batched, "antennas": problem.antennas,
                "chunks": chunks, "beams": problem.beams, "row_tiles": row_tiles,
                "columns": problem.bins * tiles.slices, "bins": problem.bins,
                "integrate": problem.integrate, "tile_bins": tiles.bins, "slices": tiles.slices,
                "slice": tiles.slice, "tiles": count, "block_tiles": block_tiles,
            }),
            shared_bytes=plan.shared_bytes,
        )  # fmt: skip
        weights, samples = Address(BaseAddress.ROWS), Address(BaseAddress.COLUMNS)
        packed = {
            "fragments": Address(BaseAddress.MEMORY),
            "descales": Address(BaseAddress.MEMORY, fragments),
        }
        out = Address(BaseAddress.OUT)
        self._launches = LaunchSequence(
            [pack, power],
            lambda addresses: [
                pack.argument_update({"weights": weights, **packed}, (), addresses),
                power.argument_update({"samples": samples, "power": out, **packed}, (), addresses),
            ],
        )
        self._name = kernel_name(plan, precision)

    def __call__(self, weights: int, samples: int, out: int) -> None:
        """Launch on these addresses."""
        if launches.watching:
            launches.note(self._name)
        # Freed after the launches, it is reused in the stream's order.
        memory = cupy.cuda.alloc(self._nbytes)
        stream = cupy.cuda.get_current_stream().ptr
        self._launches((weights, samples, out, out, memory.ptr, 0, 0, 0), stream)


def _planned(form: KernelForm, device: Device) -> tuple[BeamPowerPlan, TimeTiles]:
    """Return the plan of a form, and how its tiles lie along time."""
    problem, item = form.problem, SAMPLE_BYTES[form.samples]
    plan = form.plan or choose_plan(
        form.precision, form.samples, problem.polarizations, 1, problem.beams, True,
        device.require_arch(),
    )  # fmt: skip
    tiles = time_tiles(plan.times, problem.integrate, form.samples)
    strides = (form.stride_antenna, form.stride_batch)
    aligned = (
        tiles.aligned and form.aligned and all(stride * item % _VECTOR == 0 for stride in strides)
    )
    if form.plan is not None:
        return replace(plan, group=tiles.group, aligned=aligned), tiles
    return choose_plan(
        form.precision, form.samples, problem.polarizations, tiles.group, problem.beams, aligned,
        device.require_arch(),
    ), tiles  # fmt: skip


def _block_tiles(tiles: int, rows: int, slots: int) -> int:
    """Return how many tiles a block takes so that ``rows`` of them end soonest in so many slots."""

    def seconds(block_tiles: int) -> float:
        waves = -(-rows * -(-tiles // block_tiles) // slots)
        return waves * (block_tiles + _TILES_OF_A_START)

    return min(range(1, min(tiles, _MOST_BLOCK_TILES) + 1), key=seconds)
