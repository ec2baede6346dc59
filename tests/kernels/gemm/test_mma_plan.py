"""Plans of the mma.sync family: which are legal, and that every architecture has one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from argand import PRECISIONS, Precision
from argand.device import ARCHITECTURES, Arch
from argand.gemm.sm80_plan import candidates, check_plan, plan_gemm
from argand.runtime.plan import PlanError

from tests.kernels.compiled import ARCHS, LAYOUTS, refused
from tests.kernels.precisions import TENSOR


@pytest.mark.parametrize("arch_row", ARCHITECTURES, ids=lambda row: row.target)
@pytest.mark.parametrize("precision", TENSOR)
def test_every_architecture_has_a_plan(arch_row: Arch, precision: str) -> None:
    if refused(precision, arch_row):
        return
    for m, n in ((1, 1), (16, 100_000), (4096, 4096), (1, 70_000)):
        for vector in (1, 2):
            for a_k_major, b_k_major in LAYOUTS:
                plan = plan_gemm(
                    PRECISIONS[precision], arch_row, batch=3, m=m, n=n, k=64, sm_count=108,
                    a_k_major=a_k_major, b_k_major=b_k_major, vector=vector,
                )  # fmt: skip
                assert plan.shared_bytes <= arch_row.shared_bytes


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("k", [1, 40, 256, 257])
def test_small_scaled_products_have_stages_for_all_of_k(precision: str, k: int) -> None:
    row = PRECISIONS[precision]
    plan = plan_gemm(row, ARCHS["sm_90a"], batch=1, m=256, n=256, k=k, sm_count=132, vector=2)
    assert plan.finds_absmax == (row.scaled and k <= 256)
    assert not plan.finds_absmax or (plan.stages - 1) * plan.block_k >= k


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_k": 24}, "multiples of 16"),
        ({"warps_k": 3}, "for each of warps_k"),
        ({"finds_absmax": True}, "only a precision that scales"),
        ({"block_m": 120}, "multiple of 16 warps_m"),
        ({"promotion_interval": 24}, "promotion_interval must be a multiple"),
        ({"vector": 4}, "vector must be 1 or 2"),
        ({"stages": 1}, "stages must be at least 2"),
        ({"stages": 9}, "bytes of shared memory"),
    ],
)
def test_an_illegal_plan_says_why(change: dict[str, int], message: str) -> None:
    row: Precision = PRECISIONS["tf32"]
    arch = ARCHS["sm_80"]
    plan = replace(candidates(row, arch)[0], **change)
    with pytest.raises(PlanError, match=message):
        check_plan(plan, row, arch)


def test_fp64_has_no_tensor_core_plan() -> None:
    row = PRECISIONS["tf32"]
    with pytest.raises(PlanError, match="operand must be one of"):
        check_plan(candidates(row, ARCHS["sm_80"])[0], PRECISIONS["fp64"], ARCHS["sm_80"])
