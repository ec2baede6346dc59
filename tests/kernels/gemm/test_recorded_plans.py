"""The choice among candidate plans whose times on an H200 were recorded.

``recorded_plans.csv`` has the candidates of the wgmma family that ``python -m benchmarks.sweep gemm
--seed 20261124`` timed, of drawn sizes, and some of seeds 20261301 and 20261321, which have tiles
whose k two warpgroups share. The model of `argand.gemm.heuristics` is fitted to them and others; a
change of its constants must not lose what it reaches here.
"""

from __future__ import annotations

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.candidates import candidates
from argand.gemm.heuristics import choose, estimate
from argand.gemm.question import OperandTraits, Question
from argand.gemm.sizes import GemmSizes

from tests.kernels.gemm.recorded_times import Case, recorded, sizes_of

HOPPER = arch_for(90)
SM_COUNT = 132


def posed(case: Case) -> tuple[GemmSizes, OperandTraits, OperandTraits]:
    """The sizes, and the traits of row-major operands of a case."""
    shape, kind, _ = case
    batch, m, n, k = sizes_of(shape)
    a_contiguous, b_contiguous = (k if kind[0] == "N" else m), (n if kind[1] == "N" else k)
    return (
        GemmSizes(batch, m, n, k, "half" in kind),
        OperandTraits(a_contiguous % 2 == 0, kind[0] == "N", conjugated=kind[0] == "C"),
        OperandTraits(b_contiguous % 2 == 0, kind[1] != "N", conjugated=kind[1] == "C"),
    )


def estimates(case: Case) -> dict[str, float]:
    row, (sizes, a, b) = PRECISIONS[case[2]], posed(case)
    return {
        choice.name: 1e6 * estimate(choice, Question(row, sizes, a, b), SM_COUNT)
        for choice in candidates(Question(row, sizes, a, b), HOPPER, SM_COUNT)
        if choice.plan is not None
    }


def test_the_choice_loses_little_to_the_fastest() -> None:
    regrets, errors = [], []
    for case, times in recorded("recorded_plans.csv").items():
        estimated = estimates(case)
        assert set(times) <= set(estimated), case
        chosen = min(times, key=lambda name: estimated[name])
        regrets.append(times[chosen] / min(times.values()))
        errors += [np.log(estimated[name] / time) for name, time in times.items()]
    assert len(regrets) > 20
    assert np.quantile(regrets, 0.9) < 1.07
    assert max(regrets) < 1.1
    assert np.std(errors) < 0.15


NAMED = [
    ("tf32", (1, 4096, 4096, 4096), "wgmma 128x128x32 3 stages fp32, B^T A^T, fused packing"),
    ("tf32", (256, 64, 4096, 64), "wgmma 128x64x32 4 stages fp32, B^T A^T"),
    ("3xtf32", (1, 8192, 8192, 8192), "wgmma 128x128x24 2 stages planar, A B"),
    ("3xfp16", (1, 3456, 4096, 4096), "wgmma 128x128x48 2 stages planar, A B"),
    ("fp16", (64, 1024, 1024, 1024), "wgmma 128x128x64 3 stages planar, A B"),
    ("bf16", (1, 4096, 4096, 4096), "wgmma 128x128x32 3 stages fp32, A B"),
]
"""Plans of sizes of docs/performance.md."""


@pytest.mark.parametrize(("precision", "sizes", "name"), NAMED, ids=str)
def test_plans_of_large_sizes_stay(
    precision: str, sizes: tuple[int, int, int, int], name: str
) -> None:
    traits = OperandTraits(), OperandTraits(k_major=False)
    question = Question(PRECISIONS[precision], GemmSizes(*sizes), *traits)
    assert choose(question, HOPPER, SM_COUNT).name == name
