"""Costs of what a warp of the mma.sync family does, to which its model of time adds up.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from argand.gemm.sm80.plan import MmaPlan


@dataclass(frozen=True)
class Costs:
    """Cycles of a multiprocessor's quarter for what a warp does, and microseconds of the rest.

    They are fitted to times in rows of calls on an H200 (in docs/experiments:
    2026-11-30-fitted-constants.md and 2026-11-28-estimates-of-calls-in-rows.md).

    Attributes:
        clock: cycles of a microsecond.
        launch: microseconds that every call takes.
        copy: cycles of one cp.async of a warp.
        wide_copy: factor of ``copy`` for a cp.async of two complex numbers.
        line: least cycles of a line of L2 that copies touch.
        mma: cycles of one MMA.
        mma_k: cycles of a warp for the k of one MMA, whatever it multiplies.
        number: cycles in which a warp reads and rounds one number a lane to one term of tf32.
        split: cycles in which it reads one and splits it in two terms of tf32 by the fp32 units,
            the second one cut.
        promotion: cycles of promoting one accumulator of each lane.
        waiting: warps of a quarter that wait: w of them reach w / (w + waiting) of its rate.
        store: microseconds of storing 1024 elements of each group of warps.
        scaled_store: factor of a store that descales.
        shallow: factor of a mainloop of one term whose stages are 16 k.
        k_tile: microseconds of a k-tile's barrier and of the latency after it.
        shared_k_tile: least microseconds of a k-tile that groups of warps share, for its reads and
            barriers.
        groups: microseconds in which groups of warps that share k reduce accumulators.
        one_k_tile: ``groups`` where all of k is one k-tile that the compiler knows.
        term: microseconds in which the code of each further term is read.
        apart_term: ``term`` where small products have accumulators of their own.
        absmax: microseconds in which blocks find the absmax of one k-tile.
        next_absmax: microseconds of ``absmax`` for each further k-tile.
        cluster: microseconds in which the blocks of a cluster start and exchange their slices.
        cluster_vector: microseconds of that for a vector of each thread.
        grid: microseconds in which clusters store partial tiles and the last one is found.
        grid_vector: microseconds of the last one for a vector of each thread.
        absmax_launch: microseconds of the absmax kernel before.
        absmax_launch_bytes: bytes of a microsecond that it reads.
        bytes: bytes of a microsecond in which memory moves results, and a triangle's operand.
        line_bytes: bytes of lines of operands that memory gives in a microsecond.
        exposed: fraction of the shorter of work and the result's traffic that the longer does not
            hide, at one term where blocks fill more than one wave or a multiprocessor holds one;
            of triangles, of all their traffic.
    """

    clock: float = 1755.0
    launch: float = 1.96
    copy: float = 2.2
    wide_copy: float = 0.41
    line: float = 8.5
    mma: float = 1.12
    mma_k: float = 0.0
    number: float = 8.0
    split: float = 3.2
    promotion: float = 42.1
    waiting: float = 0.295
    store: float = 0.282
    scaled_store: float = 1.82
    shallow: float = 1.2
    k_tile: float = 0.0
    shared_k_tile: float = 0.335
    groups: float = 0.3
    one_k_tile: float = 0.1
    term: float = 0.337
    apart_term: float = 0.17
    absmax: float = 0.526
    next_absmax: float = 0.396
    cluster: float = 0.26
    cluster_vector: float = 0.06
    grid: float = 1.5
    grid_vector: float = 0.084
    absmax_launch: float = 3.8
    absmax_launch_bytes: float = 0.57e6
    bytes: float = 3.2e6
    line_bytes: float = 3.4e6
    exposed: float = 0.25


_COSTS = Costs()
_TRIANGLE_COSTS = Costs(
    groups=0.0, one_k_tile=0.0, copy=5.57, mma=1.0, mma_k=16.8, number=6.2, split=6.2,
    promotion=26.5, waiting=0.219, store=0.357, shallow=1.0, line=0.0, k_tile=0.189,
    shared_k_tile=0.462, cluster=0.83, cluster_vector=0.0, bytes=2.6e6, exposed=0.203,
)  # fmt: skip
"""Costs of triangles. They were not timed in rows; the launch is that of a call in a row."""
_ONE_TILE_COSTS = replace(_TRIANGLE_COSTS, store=0.2, bytes=3.8e6)
"""Costs of triangles of one tile."""
_ONE_WARP_COSTS = replace(_ONE_TILE_COSTS, store=0.3)
"""Costs of triangles that a warp computes alone, whose groups reduce accumulators."""


def costs_of(plan: MmaPlan) -> Costs:
    """Return the costs of products, of triangles, or of those of one tile."""
    if plan.one_tile:
        return _ONE_WARP_COSTS if plan.one_warp else _ONE_TILE_COSTS
    return _TRIANGLE_COSTS if plan.triangle else _COSTS
