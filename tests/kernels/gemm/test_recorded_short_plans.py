"""The choice within a family at tf32, of products of a short side or a short k (an H200).

``recorded_short_plans.csv`` has candidates of drawn products (`benchmarks.sweep.products.draw`,
seeds 20261128 to 20261202) with a side of up to 300 or a k of up to 128. The models of
`argand.gemm.heuristics` and `argand.gemm.sm80.heuristics` are fitted to them; a change must not
lose what they reach here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.candidates import candidates
from argand.gemm.heuristics import estimate
from argand.gemm.question import GemmSizes, Question
from argand.gemm.sm80 import heuristics as sm80_heuristics
from argand.gemm.sm80.plan import CLUSTER_SIZES
from argand.gemm.sm80.slices import with_grid_slices
from argand.gemm.sm80.tiles import mma_tiles

from tests.kernels.gemm.recorded_times import (
    EVENTS_US,
    Case,
    assert_regrets,
    operand,
    recorded,
    sizes_of,
)

HOPPER, SM_COUNT, TF32 = arch_for(90), 132, PRECISIONS["tf32"]


@cache
def estimates(case: Case) -> dict[str, float]:
    """Estimated microseconds of each plan."""
    shape, kind, _ = case
    batch, m, n, k = sizes_of(shape)
    a = operand(kind[0] == "N", *((k, m) if kind[0] == "N" else (m, k)), batch > 1, kind[0])
    b = operand(kind[1] != "N", *((n, k) if kind[1] == "N" else (k, n)), batch > 1, kind[1])
    sizes = GemmSizes(batch, m, n, k)
    found = {
        choice.name: 1e6 * estimate(choice, Question(TF32, sizes, a, b), SM_COUNT)
        for choice in candidates(Question(TF32, sizes, a, b), HOPPER, SM_COUNT)
        if choice.wgmma is not None or choice.fma is not None
    }
    cut = [replace(x, cluster=n) for x in mma_tiles(TF32, HOPPER) for n in CLUSTER_SIZES]
    for plan in (*cut, *with_grid_slices(cut, HOPPER, sizes, SM_COUNT)):
        vector = 1 + (a.copyable and b.copyable)
        laid = replace(plan, a_k_major=a.k_major, b_k_major=b.k_major, vector=vector)
        found[f"mma.sync {plan.name}"] = sm80_heuristics.estimated_microseconds(
            laid, TF32, SM_COUNT, sizes
        )
    return found


@pytest.mark.parametrize(
    ("family", "cases", "mean", "tenth", "most"),
    [("mma.sync", 65, 1.04, 1.15, 1.35), ("wgmma", 85, 1.03, 1.1, 1.25)],
)
def test_the_choice_loses_little_to_the_fastest(
    family: str, cases: int, mean: float, tenth: float, most: float
) -> None:
    regrets = []
    for case, times in recorded("recorded_short_plans.csv", "library_us").items():
        estimated = estimates(case)
        known = [name for name in times if name in estimated and name.startswith(family)]
        known = [name for name in known if "fused packing" not in name]
        if len(known) > 1:
            chosen = min(known, key=lambda name: estimated[name])
            regrets.append(times[chosen] / min(times[name] for name in known))
    assert len(regrets) > cases
    assert_regrets(regrets, mean, tenth, most)


def test_fused_packing_takes_as_long_as_its_warps_pack() -> None:
    """Up to three times as long as the product itself, where they pack the larger operand."""
    ratios = [
        (time - EVENTS_US["wgmma"]) / estimates(case)[name]
        for case, times in recorded("recorded_short_plans.csv", "library_us").items()
        for name, time in times.items()
        if "fused packing" in name and name in estimates(case)
    ]
    assert len(ratios) > 15
    assert min(ratios) > 0.75
    assert max(ratios) < 1.15
