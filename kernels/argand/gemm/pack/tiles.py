"""Tiles of packing, and clusters of the blocks that pack one panel.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from argand.gemm.pack.plan import TILE, PackPlan, scales
from argand.multiprocessor import PORTABLE_CLUSTER
from argand.precision import Precision

_TILES, _TILE_ROWS = (TILE // 4, TILE // 2, TILE), (16, 8, 4)
"""Complex numbers of tiles of few rows, and these rows, in the order in which they are tried."""
_CLUSTER_ROWS = 8
"""Rows of a panel that a cluster packs where it packs none of more."""


def panel_cluster(plan: PackPlan, precision: Precision, pitch: int) -> int:
    """Return the blocks of a cluster that pack a panel and exchange the absmax of its rows.

    A cluster has a power of two of blocks, so some may lie past the panel. It is 1 where more than
    a quarter would, where a panel is one block's or rows are not scaled, and where it has more
    blocks than a cluster holds.
    """
    blocks = -(-pitch // plan.tile_k)
    cluster = 1 << (blocks - 1).bit_length()
    fills = cluster <= PORTABLE_CLUSTER and 4 * blocks >= 3 * cluster
    return cluster if scales(precision, plan) and fills else 1


def laid_out(
    plans: Sequence[PackPlan], precision: Precision, pitches: Sequence[int],
    matrices: Sequence[tuple[int, int]], sm_count: int,
) -> list[PackPlan]:  # fmt: skip
    """Return the plans of a launch in tiles of few rows, or in clusters of one size for all.

    ``matrices`` has the rows of each source, and how many matrices it is. Panels have half as many
    rows where only that makes them clusters, whose blocks exchange no absmax through global memory,
    and all blocks are resident at once; else others hide the wait
    (docs/experiments/2026-11-30-fitted-constants.md).
    """
    apart = _in_tiles_apart(plans, precision, pitches, matrices, sm_count)
    if apart:
        return apart
    blocks = _blocks(plans, pitches, matrices)
    resident = blocks <= min(plan.blocks_per_sm for plan in plans) * sm_count
    every = [list(plans)]
    if resident:
        each = zip(plans, pitches, strict=True)
        every.insert(0, [_in_cluster(plan, precision, pitch) for plan, pitch in each])
    for found in every:
        clusters = _clusters(found, precision, pitches)
        if len(set(clusters)) == 1:
            return [replace(plan, cluster=clusters[0]) for plan in found]
    return every[-1]


def _in_tiles_apart(
    plans: Sequence[PackPlan], precision: Precision, pitches: Sequence[int],
    matrices: Sequence[tuple[int, int]], sm_count: int,
) -> list[PackPlan] | None:  # fmt: skip
    """Return the plans in the smallest tiles that have a multiprocessor each.

    A block alone leaves most of a multiprocessor idle, and the product waits for it. A panel is one
    block's, or a cluster's. None where rows are not scaled, or no such tile serves all sources.
    """
    if not all(scales(precision, plan) for plan in plans):
        return None
    for elements, rows in product(_TILES, _TILE_ROWS):
        found = [replace(plan, elements=elements, rows=rows) for plan in plans]
        clusters = _clusters(found, precision, pitches)
        found = [replace(x, cluster=n) for x, n in zip(found, clusters, strict=True)]
        covered = all(
            pitch <= plan.tile_k * plan.cluster and plan.loads_whole_lines
            for plan, pitch in zip(found, pitches, strict=True)
        )
        if covered and len(set(clusters)) == 1 and _blocks(found, pitches, matrices) <= sm_count:
            return found
    return None


def _clusters(plans: Sequence[PackPlan], precision: Precision, pitches: Sequence[int]) -> list[int]:
    each = zip(plans, pitches, strict=True)
    return [panel_cluster(plan, precision, pitch) for plan, pitch in each]


def _blocks(
    plans: Sequence[PackPlan], pitches: Sequence[int], matrices: Sequence[tuple[int, int]]
) -> int:
    """Return the blocks of a launch that packs so many rows of so many matrices each."""
    each = zip(plans, pitches, matrices, strict=True)
    return sum(plan.panels(*matrix) * plan.panel_blocks(pitch) for plan, pitch, matrix in each)


def _in_cluster(plan: PackPlan, precision: Precision, pitch: int) -> PackPlan:
    """Return the plan, or that of a panel of half as many rows where it alone is a cluster.

    Where k is contiguous, a block's threads load a row of such a tile in pairs alone.
    """
    narrow = replace(plan, rows=_CLUSTER_ROWS)
    loads = plan.vector == 2 or not plan.k_major
    gains = loads and panel_cluster(plan, precision, pitch) == 1
    return narrow if gains and panel_cluster(narrow, precision, pitch) > 1 else plan
