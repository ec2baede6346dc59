"""The launches of one form of beam power: weights are packed, then multiplied and detected.

A few beams are multiplied with the weights as they are.
"""

from __future__ import annotations

import cupy

from argand.beam_power.heuristics import KernelForm, kernels_of, plan_beam_power
from argand.beam_power.plan import (
    BEAM_POWER_ARGUMENTS,
    DEPTH,
    PACK_THREADS,
    ROW_TILE,
    WEIGHT_ARGUMENTS,
    TimeTiles,
)
from argand.device import Device
from argand.multiprocessor import LARGEST_GRID
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.arguments import Address
from argand.runtime.launch.graph import LaunchSequence
from argand.runtime.launch.kernel import BoundKernel, bound_kernel

_WEIGHTS, _SAMPLES, _POWER, _PACKED = range(4)
"""Addresses of a call: weights, samples, the result, and workspace for packed weights."""
_MAX_BLOCK_TILES = 256
"""Most tiles of a block, one after another."""


class BeamPowerLaunch:
    """The launches of a form. ``slices`` above 1 says that a bin is summed in so many parts."""

    def __init__(self, form: KernelForm, device: Device) -> None:
        problem = form.problem
        plan, tiles = plan_beam_power(form, device)
        #: The plan of the kernel.
        self.plan = plan
        self.slices = tiles.slices
        self._form, self._device = form, device
        self._kernels = kernels_of(plan, form, device.require_arch())
        beam_blocks = -(-problem.beams // plan.beams)
        #: Blocks of 16 beams of a matrix of weights, and matrices.
        self._row_tiles = -(-beam_blocks * plan.beams // ROW_TILE)
        self._matrices = problem.batch * problem.polarizations if form.weights_batched else 1
        packed_tiles = self._matrices * self._row_tiles
        fragments = packed_tiles * self._kernels.fragment_bytes
        descales = 4 * packed_tiles * ROW_TILE
        self._nbytes = fragments + descales if self._kernels.pack else 0
        self._name = self._kernels.power[1]
        power = self._power_kernel(tiles, problem.batch * beam_blocks)
        members = {"samples": Address(_SAMPLES), "power": Address(_POWER)}
        if self._kernels.pack is None:
            members["fragments"] = Address(_WEIGHTS)
            self._launches = LaunchSequence(
                [power], lambda addresses: [power.argument_update(members, (), addresses)]
            )
            return
        packed = {"fragments": Address(_PACKED), "descales": Address(_PACKED, fragments)}
        pack = self._pack_kernel(self._kernels.pack)
        self._launches = LaunchSequence(
            [pack, power],
            lambda addresses: [
                pack.argument_update({"weights": Address(_WEIGHTS), **packed}, (), addresses),
                power.argument_update(members | packed, (), addresses),
            ],
        )

    def _power_kernel(self, tiles: TimeTiles, rows: int) -> BoundKernel:
        """Return the kernel that multiplies and detects, for ``rows`` rows of tiles along time.

        Raises ValueError where a launch has no room for its blocks.
        """
        form, kernels, problem = self._form, self._kernels, self._form.problem
        count = -(-problem.bins // tiles.bins) * tiles.slices
        slots = self._device.sm_count * kernels.blocks
        block_tiles = _block_tiles(count, rows, slots, kernels.start)
        blocks = rows * -(-count // block_tiles)
        if max(blocks, self._matrices * self._row_tiles) > LARGEST_GRID:
            raise ValueError(f"leading axes, beams and bins take {blocks} blocks, too many")
        return bound_kernel(
            *kernels.power, blocks, self.plan.threads, BEAM_POWER_ARGUMENTS, self._device,
            {
                "stride_antenna": form.stride_antenna, "stride_batch": form.stride_batch,
                "weights_batched": form.weights_batched, "antennas": problem.antennas,
                "chunks": -(-problem.antennas // DEPTH[form.samples]), "beams": problem.beams,
                "row_tiles": self._row_tiles, "columns": problem.bins * tiles.slices,
                "bins": problem.bins, "integrate": problem.integrate, "tile_bins": tiles.bins,
                "slices": tiles.slices, "slice": tiles.slice, "tiles": count,
                "block_tiles": block_tiles,
            },
            kernels.shared_bytes,
        )  # fmt: skip

    def _pack_kernel(self, kernel: tuple[str, str]) -> BoundKernel:
        """Return the kernel that packs weights, of this source and name."""
        problem = self._form.problem
        return bound_kernel(
            *kernel, self._matrices * self._row_tiles, PACK_THREADS, WEIGHT_ARGUMENTS,
            self._device,
            {
                "beams": problem.beams, "antennas": problem.antennas,
                "row_tiles": self._row_tiles, "fragments_k": self._kernels.fragments_k,
            },
        )  # fmt: skip

    def __call__(self, weights: int, samples: int, out: int) -> None:
        """Launch on these addresses."""
        if kernel_trace.watching:
            kernel_trace.note(self._name)
        # Freed after the launches, it is reused in the stream's order.
        memory = cupy.cuda.alloc(self._nbytes) if self._nbytes else None
        stream = cupy.cuda.get_current_stream().ptr
        packed = memory.ptr if memory is not None else 0
        self._launches((weights, samples, out, packed), stream)


def _block_tiles(tiles: int, rows: int, slots: int, start: float) -> int:
    """Return the tiles of a block by which ``rows`` rows of them end soonest in ``slots``."""

    def seconds(block_tiles: int) -> float:
        waves = -(-rows * -(-tiles // block_tiles) // slots)
        return waves * (block_tiles + start)

    return min(range(1, min(tiles, _MAX_BLOCK_TILES) + 1), key=seconds)
