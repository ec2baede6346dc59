"""The kernels of small Hermitian systems, without a GPU: they compile without spills and fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from argand.device import ARCHITECTURES, Arch
from argand.hermitian.plan import LARGEST_N, check_plan, kernel_name, kernel_source, plan_hermitian
from argand.runtime.complex_types import ITEM
from argand.runtime.plan import PlanError

from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import assert_clean

SIZES = range(1, LARGEST_N + 1) if EXHAUSTIVE else (15, 32, 127)
"""A size for each group of threads, whole and ragged ones."""
HOPPER = ARCHITECTURES[3]


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ITEM)
@pytest.mark.parametrize("n", SIZES)
def test_kernels_compile(arch: Arch, n: int, dtype: str) -> None:
    plans = {
        plan_hermitian(n, columns, dtype, arch) for columns in ((1, 4) if EXHAUSTIVE else (4,))
    }
    for plan in plans:
        assert_clean(kernel_source(plan, dtype), arch.target, kernel_name(plan, dtype))


def test_factors_in_global_memory_compile(arch: Arch) -> None:
    plan = replace(plan_hermitian(128, 4, "complex128", HOPPER), in_global=True)
    assert_clean(kernel_source(plan, "complex128"), arch.target, kernel_name(plan, "complex128"))


@pytest.mark.parametrize("dtype", ITEM)
def test_plans_fit_every_architecture(dtype: str) -> None:
    for arch in ARCHITECTURES:
        for n in range(1, LARGEST_N + 1):
            for columns in (1, 2, 3, 100):
                plan = plan_hermitian(n, columns, dtype, arch)
                assert plan.n == n
                assert not plan.in_global or plan.packed * ITEM[dtype] > 0.9 * arch.shared_bytes


PLAN = plan_hermitian(64, 4, "complex64", HOPPER)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n": 129}, "n must be from 1 to 128"),
        ({"side": 5}, "side must be 2, 4, 8 or 16"),
        ({"groups": 2}, "do not make whole warps"),
        ({"side": 4, "groups": 1}, "do not make whole warps"),
        ({"rhs": 0}, "do not fit"),
        ({"blocks": 64}, "do not fit"),
        ({"side": 2, "groups": 32}, "more shared memory"),
    ],
)
def test_other_plans_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        check_plan(replace(PLAN, **changes), "complex64", HOPPER)
