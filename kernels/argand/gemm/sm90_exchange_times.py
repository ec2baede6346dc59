"""The model of the time in which blocks of the wgmma family add up parts of a tile's k.

Those are split-K slices, slices of a cluster, and partial tiles of stream-K. Needs no GPU and no
CuPy. `gemm.sm90_heuristics` says to what the constants were fitted.
"""

from __future__ import annotations

from argand.gemm.question import GemmSizes
from argand.gemm.sm90_plan import WgmmaPlan
from argand.gemm.sm90_store_times import STORE_BYTES

_REDUCE_LAUNCH, _REDUCED_BYTES = {1: 1.8e-6, 2: 2.68e-6}, 6e12
"""Seconds of the launch that adds split-K slices, by terms, and the bytes a second of them that are
written and read, most of them in L2. Beside clusters that share the same tile's k alike, slices
took 0.7 to 4 us longer (85 pairs of plans on an H200)."""
_CLUSTER_START, _CLUSTER_BYTES = 0.3e-6, 20e9
"""Seconds in which the blocks of a cluster begin together, and the bytes a second that a
multiprocessor sends to the shared memory of others, 10 a clock: the blocks send all but their own
part of a tile's sums at once."""
_STREAM_K, _PARTIAL_BYTES = 2.9e-6, 100e9
"""Seconds in which blocks wait for the partial tiles of others, and bytes a second of those that
one block reduces (fits gave 92 to 106)."""


def reduction_seconds(slices: int, sizes: GemmSizes, terms: int) -> float:
    """Return the seconds of the launch that adds split-K slices, 0 of a single one."""
    if slices == 1:
        return 0.0
    result_bytes = 8 * sizes.batch * sizes.m * sizes.n
    # Each slice's results are written and read again.
    return _REDUCE_LAUNCH[terms] + (2 * slices + 1) * result_bytes / _REDUCED_BYTES


def cluster_seconds(plan: WgmmaPlan) -> float:
    """Return the seconds in which the blocks of a cluster exchange parts of a tile, 0 of one."""
    if plan.cluster == 1:
        return 0.0
    sent = 8 * plan.block_m * plan.block_n * (1 - 1 / plan.cluster)
    return _CLUSTER_START + sent / _CLUSTER_BYTES


def partials_seconds(plan: WgmmaPlan, share: float) -> float:
    """Return the seconds in which blocks exchange partial tiles of stream-K, each a ``share``.

    A block stores one and reduces those of a tile.
    """
    tile = 8 * plan.block_m * plan.block_n
    return _STREAM_K + tile / STORE_BYTES + tile / share / _PARTIAL_BYTES
