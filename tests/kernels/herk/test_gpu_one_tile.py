"""Hermitian products of one tile: each row is read once, results go through shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import gpu
from argand.gemm.candidates import GemmChoice
from argand.gemm.sm80_heuristics import cut_tiles
from argand.gemm.tuned import trial

from tests.kernels.herk.herk_cases import OPS, check, normal
from tests.kernels.precisions import TENSOR

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("op", OPS)
def test_matrices_of_one_tile(cp: Any, rng: np.random.Generator, precision: str, op: str) -> None:
    for n, k in ((1, 5), (17, 67), (32, 96), (50, 31)):
        a = normal(rng, 9, *((n, k) if op == "N" else (k, n)))
        check(cp, a, precision, "mma.sync", op, alpha=-0.5)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("block", [16, 32, 48, 64])
def test_every_tile_that_is_one(
    cp: Any, rng: np.random.Generator, precision: str, block: int
) -> None:
    arch, row = gpu(cp.cuda.Device().id).require_arch(), PRECISIONS[precision]
    for k in (64, 531):
        sizes = (5, block - 1, block - 1, k)
        for tile in cut_tiles(row, arch, sizes, 132, triangle=True):
            if tile.block_m == tile.block_n == block:
                with trial(GemmChoice(tile=tile)):
                    check(cp, normal(rng, 5, block - 1, k), precision, None)
