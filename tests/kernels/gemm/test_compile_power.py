"""Every epilogue that squares compiles without a GPU."""

from __future__ import annotations

import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.candidates import candidates as gemm_choices
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm90.source import wgmma_kernel_name, wgmma_source
from argand.runtime.plan import WGMMA_TARGET

from tests.kernels.compiled import assert_clean
from tests.kernels.gemm.test_compile import epilogues
from tests.kernels.precisions import TENSOR

HOPPER = arch_for(90)


@pytest.mark.exhaustive
@pytest.mark.parametrize("precision", TENSOR)
def test_squared_magnitudes(precision: str) -> None:
    """The largest tile of each storage: a result is one register less to store."""
    row, sizes, seen = PRECISIONS[precision], GemmSizes(1, 4096, 4096, 4096, power=True), set()
    for k_major in (False, True):
        traits = OperandTraits(True, k_major)
        for choice in gemm_choices(Question(row, sizes, traits, traits), HOPPER, 132):
            plan = choice.wgmma
            if plan is None or (plan.storage, plan.k_major, plan.fused_pack) in seen:
                continue
            seen.add((plan.storage, plan.k_major, plan.fused_pack))
            assert plan.power
            for one in epilogues(precision, plan):
                assert_clean(wgmma_source(row, one), WGMMA_TARGET, wgmma_kernel_name(row, one))
