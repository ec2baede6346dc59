"""The choice among plans of mma.sync whose times on an H200 were recorded.

``recorded_mma_plans.csv`` has candidates of drawn products, 27 of which a library won at tf32
(`python -m benchmarks.sweep gemm --seed 20261124`). The model of `argand.gemm.sm80.heuristics`
has been fitted to later kernels since; a change of its constants must not lose what it reaches
here.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.question import GemmSizes
from argand.gemm.sm80.heuristics import estimated_microseconds
from argand.gemm.sm80.legality import whole_passes
from argand.gemm.sm80.plan import CLUSTER_SIZES, MmaPlan
from argand.gemm.sm80.tiles import mma_tiles

from tests.kernels.gemm.recorded_times import (
    EVENTS_US,
    Case,
    assert_regrets,
    recorded,
    recorded_precision,
    sizes_of,
)

SM_COUNT = 132


def estimates(case: Case) -> dict[str, float]:
    """Estimated microseconds of each tile and number of slices, for row-major operands."""
    shape, kind, precision = case
    batch, m, n, k = sizes_of(shape)
    even = (k if kind[0] == "N" else m) % 2 == (n if kind[1] == "N" else k) % 2 == 0
    found = {}
    for tile in mma_tiles(recorded_precision(precision), arch_for(90)):
        for slices in CLUSTER_SIZES:
            plan = replace(
                tile, cluster=slices, a_k_major=kind[0] == "N", b_k_major=kind[1] != "N",
                vector=1 + even,
            )  # fmt: skip
            found[plan.name] = _estimated(plan, precision, GemmSizes(batch, m, n, k))
    return found


def _estimated(plan: MmaPlan, precision: str, sizes: GemmSizes) -> float:
    plan = plan if whole_passes(plan) else replace(plan, vector=1)
    return estimated_microseconds(plan, recorded_precision(precision), SM_COUNT, sizes)


def test_the_choice_loses_little_to_the_fastest() -> None:
    regrets, errors = [], defaultdict[str, list[float]](list)
    for case, times in recorded("recorded_mma_plans.csv").items():
        estimated = estimates(case)
        assert set(times) <= set(estimated), case
        chosen = min(times, key=lambda name: estimated[name])
        regrets.append(times[chosen] / min(times.values()))
        close = [name for name in times if times[name] < 1.3 * min(times.values())]
        errors[case[2]] += [
            np.log((times[name] - EVENTS_US["mma.sync"]) / estimated[name]) for name in close
        ]
    assert len(regrets) > 80
    assert_regrets(regrets, mean=1.03, tenth=1.1, most=1.3)
    # Each number of terms has an offset of its own: the recorded kernels were slower. At tf32 they
    # take 1.34 of their estimates (0.116 in the standard deviation of 253 plans), but 1.13 where
    # `Costs.exposed` adds to these (0.109 of 63 plans). About their common mean that is 0.133; it
    # is 0.128 without `exposed`, which was measured on later kernels. No choice here changes by it.
    assert max(np.std(some) for some in errors.values()) < 0.135


def test_the_largest_tile_is_as_slow_as_it_was() -> None:
    """The numbers that it rounds bound it, unlike the cases recorded above (an H100)."""
    tiles = mma_tiles(PRECISIONS["tf32"], arch_for(90))
    tile = next(x for x in tiles if x.name == "128x128x16 4 stages")
    found = _estimated(replace(tile, vector=1), "tf32", GemmSizes(1, 15298, 97, 2433))
    assert abs(found / 308.1 - 1) < 0.05


@pytest.mark.parametrize(
    ("shape", "kind", "plan", "time_us"),
    [
        ("42x157x61x1153", "NT", "64x64x16 4 stages, 2 split-K slices", 58.5),
        ("40x44x63x1597", "NC", "64x64x16 4 stages, 5 split-K slices", 32.4),
        ("33x46x64x2703", "NC", "64x32x32 3 stages, 2 split-K slices", 36.3),
        ("3924x32x9418", "NN", "64x32x32 3 stages, 2 split-K slices", 118.7),
    ],
)
def test_memory_gives_whole_lines(shape: str, kind: str, plan: str, time_us: float) -> None:
    """A k-tile of 16 columns begins and ends within lines of A and B^H: it reads twice its bytes.

    bf16, in rows of calls on an H200. By their bytes alone the first two are 1.4 times as fast.
    """
    found = estimates((shape, kind, "bf16"))[plan]
    assert abs(found / time_us - 1) < 0.15


@pytest.mark.parametrize(
    ("shape", "kind", "plan", "slower"),
    [
        ("40x44x63x1597", "NC", "16x64x32 3 stages, 2 split-K slices", "16x64x32 3 stages"),
        ("26x79x47x598", "TC", "16x64x32 3 stages, 2 split-K slices", "16x64x32 3 stages"),
        ("36x55x37x540", "CC", "64x16x32 3 stages, 2 split-K slices", "64x16x32 3 stages"),
        (
            "20x59x46x1288", "NC", "64x16x32 3 stages, 4 split-K slices",
            "64x16x32 3 stages, 2 split-K slices",
        ),
    ],
)  # fmt: skip
def test_blocks_with_fewer_stages_under_way_wait_longer(
    shape: str, kind: str, plan: str, slower: str
) -> None:
    """Twice as many blocks take 0.78 to 0.98 of the time at tf32 (rows of calls on an H200)."""
    found = estimates((shape, kind, "tf32"))
    assert found[plan] < found[slower]
