"""How often every plan promotes its sums, and the roundings that `promotions` counts."""

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.sm80.plan import CLUSTER_SIZES
from argand.gemm.sm80.tiles import mma_tiles, with_copies
from argand.gemm.sm90.plan import SPILL_INTERVAL, Storage
from argand.gemm.sm90.tiles import wgmma_tiles

from tests.kernels.precisions import SPLIT
from workflow.accuracy import bounds
from workflow.accuracy.promotion import LAST, SLICE, promotions


@pytest.mark.parametrize("name", SPLIT)
def test_every_plan_promotes_as_often_as_the_bound_says(name):
    row = PRECISIONS[name]
    depths = {plan.promotion_interval for plan in mma_tiles(row, arch_for(90))}
    for storage in get_args(Storage):
        for plan in wgmma_tiles(row, storage):
            depths.add(plan.block_k)
            assert plan.block_k // row.operand.mma_k - 1 <= LAST
    assert depths
    assert min(depths) > 0
    assert max(depths) <= bounds.PROMOTED_EVERY
    assert min(depths) >= SLICE


def test_promotions_count_the_sums_of_a_k_that_the_compiler_knows():
    """Sums of accumulators, groups of warps and blocks keep no rounding errors, so each counts."""
    row, arch = PRECISIONS["3xtf32"], arch_for(90)
    parts = set()
    for tile, cluster, k in product(mma_tiles(row, arch), CLUSTER_SIZES, range(1, 1025, 16)):
        plan = with_copies(replace(tile, cluster=cluster), row, arch, k)
        if plan.whole_k:
            parts.add(plan.warps_k - 1 + plan.cluster - 1)
            accumulators = 8 if plan.promoted_again else 4
            assert accumulators + plan.warps_k - 1 + plan.cluster - 1 <= promotions(k)
    assert max(parts) == 10


def test_promotions_grow_by_spills_only():
    """A slice is one promotion while all are in registers; each spill adds two."""
    longest = 3 * SPILL_INTERVAL // 2 * SLICE
    assert promotions(16) < promotions(64) < promotions(longest) < promotions(8 * longest)
    assert promotions(SPILL_INTERVAL * SLICE) - promotions(SLICE) == pytest.approx(
        SPILL_INTERVAL - 1, abs=0.1
    )
    below = 7 * (3 * SPILL_INTERVAL // 2) * 2.0**-11  # of slices whose upper bits have moved
    assert promotions(8 * longest) - promotions(longest) == pytest.approx(2 * 10 + below)
