"""Numbers of slices in which plans of the mma.sync family cut k. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from argand.device import HOPPER, Arch
from argand.gemm.question import GemmSizes
from argand.gemm.sm80.plan import CLUSTER_SIZES, MAX_GRID_SLICES, MmaPlan, holds_accumulators
from argand.gemm.workspace import SLICES_WORKSPACE
from argand.multiprocessor import CLUSTER_SM

_MAX_WAVES, _MIN_SLICE_K = 2, 48
"""Most waves of blocks, and least k of a block, where clusters share tiles."""


def k_tiles_of(plan: MmaPlan, k: int) -> int:
    """Return the k-tiles of the longest slice."""
    return -(-max(1, -(-k // plan.block_k)) // plan.slices)


def partial_bytes(plan: MmaPlan) -> int:
    """Return the bytes of the partial tiles of one tile of C, 0 where one cluster computes it."""
    return 8 * plan.grid_slices * plan.exchanged * (plan.grid_slices > 1)


def with_cluster_slices(tiles: Sequence[MmaPlan], arch: Arch, k: int) -> Iterator[MmaPlan]:
    """Yield each tile with every number of split-K slices that are shorter than those of fewer."""
    for tile in tiles:
        yield tile
        k_tiles = k_tiles_of(tile, k)
        for plan, held in _in_clusters(tile, arch):
            fewer, k_tiles = k_tiles, k_tiles_of(plan, k)
            if held and k_tiles < fewer:
                yield plan


@lru_cache(maxsize=1024)
def _in_clusters(tile: MmaPlan, arch: Arch) -> tuple[tuple[MmaPlan, bool], ...]:
    """Return the tile in each number of slices, and whether a block holds what they exchange."""
    if arch.sm < CLUSTER_SM:
        return ()
    plans = [replace(tile, cluster=slices) for slices in CLUSTER_SIZES[1:]]
    return tuple((x, x.shared_bytes <= arch.shared_bytes and holds_accumulators(x)) for x in plans)


def with_grid_slices(
    plans: Sequence[MmaPlan],
    arch: Arch,
    sizes: GemmSizes,
    sm_count: int,
    allowed: int | None = None,
) -> Iterator[MmaPlan]:
    """Yield plans whose clusters share tiles: few tiles of a long k, on Hopper.

    What the clusters leave for each other takes no more memory than split-K slices may, and at most
    ``allowed`` bytes.
    """
    capacity = SLICES_WORKSPACE * sizes.batch * (sizes.m + sizes.n) * sizes.k  # complex64 numbers
    if allowed is not None:
        capacity = min(capacity, allowed // 8)
    for tile in () if arch.sm != HOPPER else plans:
        if tile.cluster & (tile.cluster - 1):
            continue  # more plans to estimate, which gained nothing
        tiles = sizes.tiles(tile.block_m, tile.block_n)
        grid_slices = 2
        while (
            grid_slices <= MAX_GRID_SLICES
            and tiles * tile.cluster * grid_slices <= _MAX_WAVES * sm_count
            and sizes.k >= _MIN_SLICE_K * tile.cluster * grid_slices
            and tiles * grid_slices * tile.block_m * tile.block_n <= capacity
        ):  # fmt: skip
            plan = replace(tile, grid_slices=grid_slices)
            if holds_accumulators(plan):
                yield plan
            grid_slices *= 2
