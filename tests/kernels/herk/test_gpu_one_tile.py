"""Hermitian products of one tile: by mma.sync each row is read once, and results go through shared
memory; by wgmma a tile may be higher than it is wide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, herk
from argand.device import gpu
from argand.gemm.candidates import candidates
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes
from argand.gemm.sm80.heuristics import cut_tiles
from argand.gemm.tuned import trial
from argand.runtime.plan import WGMMA_TARGET, PlanError

from tests.kernels.herk.herk_cases import OPS, check
from tests.kernels.precisions import TENSOR
from tests.normal import normal

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("op", OPS)
def test_matrices_of_one_tile(cp: Any, rng: np.random.Generator, precision: str, op: str) -> None:
    for n, k in ((1, 5), (17, 67), (32, 96), (50, 31), (70, 45)):
        a = normal(rng, 9, *((n, k) if op == "N" else (k, n)))
        check(cp, a, precision, "mma.sync", op, alpha=-0.5)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("block", [16, 32, 48, 64, 80])
def test_every_tile_that_is_one(
    cp: Any, rng: np.random.Generator, precision: str, block: int
) -> None:
    arch, row = gpu(cp.cuda.Device().id).require_arch(), PRECISIONS[precision]
    for k, n, op in ((64, block - 1, "N"), (531, block, "N"), (300, block - 1, "C")):
        a = normal(rng, 5, *((n, k) if op == "N" else (k, n)))
        for tile in cut_tiles(row, arch, GemmSizes(5, n, n, k, triangle=True), 132):
            if tile.block_m == tile.block_n == block:
                with trial(GemmChoice(mma=tile)):
                    check(cp, a, precision, None, op)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("op", OPS)
def test_tiles_of_other_shapes(cp: Any, rng: np.random.Generator, precision: str, op: str) -> None:
    device = gpu(cp.cuda.Device().id)
    if device.target != WGMMA_TARGET:
        pytest.skip("wgmma needs sm_90a")
    widths = set()
    for n, k in ((65, 33), (78, 200), (96, 130), (111, 96)):
        a = normal(rng, 3, *((n, k) if op == "N" else (k, n)))
        with trial(None) as asked:
            herk(cp.asarray(a), op=op, precision=precision)
        assert asked.question is not None
        for choice in candidates(asked.question, device.require_arch(), device.sm_count):
            plan = choice.wgmma
            if plan is None or plan.block_m == plan.block_n or plan.block_n >= n + 24:
                continue
            widths.add(plan.block_n)
            other = choice
            with trial(choice):
                check(cp, a, precision, None, op, alpha=-0.5)
    assert {80, 96, 112} <= widths
    with trial(other), pytest.raises(PlanError, match="square"):
        check(cp, normal(rng, 2, 200, 40), precision, None)
