"""Values of a plan of the mma.sync family that Python and CUDA C++ both derive are the same."""

from __future__ import annotations

import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.sm80_source import mma_source
from argand.gemm.sm80_tiles import mma_tiles, one_tile_of, with_copies

from tests.kernels.gemm.plans_in_cuda import compile_plans, plan_in_cuda

HOPPER = arch_for(90)


@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
def test_cuda_derives_alike(precision: str) -> None:
    """Sums of small products, which the estimate of registers counts, above all."""
    row, plans, seen = PRECISIONS[precision], [], set()
    for tile in (*mma_tiles(row, HOPPER), *one_tile_of(row, HOPPER, 16)):
        for k in (8, 64, 97, 128, 200, 10_000):
            plan = with_copies(tile, row, HOPPER, k)
            again = "kPlan.small_apart() && kPlan.whole_k > kPlan.promoted_k()"
            seen.add((plan.small_apart, plan.promoted_again))
            plans.append(plan_in_cuda(
                mma_source(row, plan),
                f"kPlan.threads() == {plan.threads}",
                f"kPlan.small_apart() == {str(plan.small_apart).lower()}",
                f"({again}) == {str(plan.promoted_again).lower()}",
            ))  # fmt: skip
    whole = {(False, False), (True, False), (True, True)}
    assert seen == (whole if row.terms > 1 else {(False, False)})
    compile_plans("gemm/sm80_plan.cuh", plans)
