"""Column operands that are packed while others multiply (an sm_90 GPU)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import gemm
from argand.gemm_choice import GemmSizes

from tests.kernels.product_cases import normal
from tests.kernels.wgmma_cases import choices, forced

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]


@pytest.mark.parametrize(
    "shape", [(1, 130, 70, 66), (3, 300, 200, 260), (2, 68, 900, 67), (1, 515, 129, 2050),
              (40, 140, 260, 520), (1, 1030, 1100, 1024)]
)  # fmt: skip
def test_packing_on_the_way_changes_no_bit(
    cp: Any, rng: np.random.Generator, shape: tuple[int, int, int, int]
) -> None:
    """Both operands in turn are the column operand; one is to be conjugated."""
    batch, m, n, k = shape
    wide = k + k % 2  # lines begin at multiples of 16 bytes
    a = cp.asarray(normal(rng, batch, m, wide))[..., :k]
    b = cp.asarray(normal(rng, batch, n, wide))[..., :k]
    nbytes = 8 * batch * (m + n) * (k + 64) * 4
    found = 0
    for choice in choices(cp, "tf32", GemmSizes(*shape), k_fast=True):
        assert choice.plan is not None
        if not choice.plan.packs:
            continue
        found += 1
        results = []
        for packs in (False, True, True):
            # What a call before left in the memory of this one must not be taken for planes.
            poison = cp.full(nbytes // 4, np.nan, cp.float32)
            del poison
            with forced(replace(choice, plan=replace(choice.plan, packs=packs))):
                results.append(gemm(a, b, op_b="C", precision="tf32"))
        assert all(bool((x == results[0]).all()) for x in results)
    assert found
