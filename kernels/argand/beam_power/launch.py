"""The launches of one form of beam power: weights are packed, then multiplied and detected.

A few beams are multiplied with the weights as they are.
"""

from __future__ import annotations

import cupy

from argand.beam_power.heuristics import KernelForm, kernels_of, planned
from argand.beam_power.plan import (
    BEAM_POWER_ARGUMENTS,
    DEPTH,
    PACK_THREADS,
    ROW_TILE,
    WEIGHT_ARGUMENTS,
)
from argand.device import Device
from argand.multiprocessor import LARGEST_GRID
from argand.runtime import kernel_trace
from argand.runtime.arguments import Address, Arguments, BaseAddress, arguments_dtype
from argand.runtime.graph import LaunchSequence
from argand.runtime.kernel import BoundKernel
from argand.runtime.loading import PendingKernel

_MOST_BLOCK_TILES = 256
"""Most tiles of a block, one after another."""


class BeamPowerLaunch:
    """The launches of a form. ``slices`` above 1 says that sums are of so many parts of a bin."""

    def __init__(self, form: KernelForm, device: Device) -> None:
        problem = form.problem
        plan, tiles = planned(form, device)
        #: The plan of the kernel.
        self.plan = plan
        self.slices = tiles.slices
        kernels = kernels_of(plan, form, device.require_arch())
        beam_blocks = -(-problem.beams // plan.beams)
        row_tiles = -(-beam_blocks * plan.beams // ROW_TILE)
        matrices = problem.batch * problem.polarizations if form.weights_batched else 1
        fragments = matrices * row_tiles * kernels.fragment_bytes
        descales = 4 * matrices * row_tiles * ROW_TILE
        self._nbytes = fragments + descales if kernels.pack else 0
        count = -(-problem.bins // tiles.bins) * tiles.slices
        block_tiles = _block_tiles(
            count, problem.batch * beam_blocks, device.sm_count * kernels.blocks, kernels.start
        )
        blocks = problem.batch * beam_blocks * -(-count // block_tiles)
        if max(blocks, matrices * row_tiles) > LARGEST_GRID:
            raise ValueError(f"leading axes, beams and bins take {blocks} blocks, too many")
        power = BoundKernel(
            PendingKernel(
                kernels.power[0], device.target, kernels.power[1], kernels.shared_bytes
            ),
            blocks, plan.threads,
            Arguments(arguments_dtype(BEAM_POWER_ARGUMENTS), {
                "fragments": 0, "descales": 0, "samples": 0, "power": 0,
                "stride_antenna": form.stride_antenna, "stride_batch": form.stride_batch,
                "weights_batched": form.weights_batched, "antennas": problem.antennas,
                "chunks": -(-problem.antennas // DEPTH[form.samples]), "beams": problem.beams,
                "row_tiles": row_tiles, "columns": problem.bins * tiles.slices,
                "bins": problem.bins, "integrate": problem.integrate, "tile_bins": tiles.bins,
                "slices": tiles.slices, "slice": tiles.slice, "tiles": count,
                "block_tiles": block_tiles,
            }),
            shared_bytes=kernels.shared_bytes,
        )  # fmt: skip
        weights, samples = Address(BaseAddress.ROWS), Address(BaseAddress.COLUMNS)
        out = Address(BaseAddress.OUT)
        self._name = kernels.power[1]
        if kernels.pack is None:
            self._launches = LaunchSequence(
                [power],
                lambda addresses: [
                    power.argument_update(
                        {"samples": samples, "power": out, "fragments": weights}, (), addresses
                    ),
                ],
            )
            return
        packed = {
            "fragments": Address(BaseAddress.MEMORY),
            "descales": Address(BaseAddress.MEMORY, fragments),
        }
        pack = BoundKernel(
            PendingKernel(kernels.pack[0], device.target, kernels.pack[1]),
            matrices * row_tiles, PACK_THREADS,
            Arguments(arguments_dtype(WEIGHT_ARGUMENTS), {
                "weights": 0, "fragments": 0, "descales": 0, "beams": problem.beams,
                "antennas": problem.antennas, "row_tiles": row_tiles,
                "fragments_k": kernels.fragments_k,
            }),
        )  # fmt: skip
        self._launches = LaunchSequence(
            [pack, power],
            lambda addresses: [
                pack.argument_update({"weights": weights, **packed}, (), addresses),
                power.argument_update({"samples": samples, "power": out, **packed}, (), addresses),
            ],
        )

    def __call__(self, weights: int, samples: int, out: int) -> None:
        """Launch on these addresses."""
        if kernel_trace.watching:
            kernel_trace.note(self._name)
        # Freed after the launches, it is reused in the stream's order.
        memory = cupy.cuda.alloc(self._nbytes) if self._nbytes else None
        stream = cupy.cuda.get_current_stream().ptr
        packed = memory.ptr if memory is not None else 0
        self._launches((weights, samples, out, out, packed, 0, 0, 0), stream)


def _block_tiles(tiles: int, rows: int, slots: int, start: float) -> int:
    """Return the tiles of a block by which ``rows`` rows of them end soonest in ``slots``."""

    def seconds(block_tiles: int) -> float:
        waves = -(-rows * -(-tiles // block_tiles) // slots)
        return waves * (block_tiles + start)

    return min(range(1, min(tiles, _MOST_BLOCK_TILES) + 1), key=seconds)
