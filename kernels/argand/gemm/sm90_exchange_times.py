"""The model of the time in which blocks of the wgmma family add up parts of a tile's k.

Those are split-K slices, slices of a cluster, and partial tiles of stream-K. Needs no GPU and no
CuPy. `gemm.sm90_heuristics` says to what the constants were fitted.
"""

from __future__ import annotations

from argand.gemm.sizes import GemmSizes
from argand.gemm.sm90_plan import WgmmaPlan

_REDUCE_LAUNCH = {1: 1.64e-6, 2: 2.68e-6}
"""By terms. The fit was 2.65 us; 0.9 less since the reduction begins as the product's blocks end
(the mean of 44 drawn products at tf32 and 3xtf32). At two terms that left slices 0.04 to 0.07 too
short beside tiles that are not sliced (94 products on an H200, seeds 20261251 to 20261321)."""
_CLUSTER_EXCHANGE = 1.2e-6
"""Seconds in which blocks of a cluster begin together and exchange parts of a tile (36 plans of 20
products on an H200: 7% off in the standard deviation)."""
_STREAM_K = 2.9e-6
"""Seconds in which blocks wait for the partial tiles of others."""
_PARTIAL_BYTES = 48.8e9
"""Bytes a second of partial tiles that one block reduces. Fits to 44 products of each of two seeds
gave 34 and 62 GB/s (an H200)."""


def reduction_seconds(slices: int, sizes: GemmSizes, terms: int, pack_bytes: float) -> float:
    """Return the seconds of the launch that adds split-K slices, 0 of a single one."""
    if slices == 1:
        return 0.0
    result_bytes = 8 * sizes.batch * sizes.m * sizes.n
    # Each slice's results are written and read again.
    return _REDUCE_LAUNCH[terms] + (2 * slices + 1) * result_bytes / pack_bytes


def cluster_seconds(plan: WgmmaPlan) -> float:
    """Return the seconds in which the blocks of a cluster exchange parts of a tile, 0 of one."""
    return _CLUSTER_EXCHANGE if plan.cluster > 1 else 0.0


def partials_seconds(plan: WgmmaPlan, share: float) -> float:
    """Return the seconds in which a block gets the partial tiles of stream-K, each a ``share``."""
    return _STREAM_K + 8 * plan.block_m * plan.block_n / share / _PARTIAL_BYTES
