"""Results whose rows begin in the middle of 16 bytes (a GPU).

Neighbouring lanes exchange columns there, so that vectors are aligned. Every element must get the
bits that it gets in a result of aligned rows, and nothing beside the result may change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, gemm
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes
from argand.gemm.sm80.tiles import mma_tiles

from tests.kernels.compiled import ARCHS
from tests.kernels.gemm.product_cases import normal
from tests.kernels.gemm.sm90.wgmma_cases import choices, overridden
from tests.kernels.precisions import TENSOR

pytestmark = pytest.mark.gpu

M, K = 69, 43
# Ends of eight columns, of a tile, of two and of three, at an odd and at an even length.
WIDTHS = (1, 7, 8, 9, 64, 65, 127, 129, 261)


def assert_bits_stay(cp: Any, a: Any, b: Any, n: int, **how: Any) -> None:
    """For rows that begin at each 8 bytes, of odd and of even pitch."""
    aligned = cp.full((M, 2 * n), np.nan, np.complex64)[:, :n]
    gemm(a, b, out=aligned, **how)
    assert bool(cp.isfinite(aligned).all())
    for pitch in (n + 6, n + 7):
        for first in (0, 1, 2, 3):
            memory = cp.full((M + 2, pitch), -1, np.complex64)
            out = memory[1 : M + 1, first : first + n]
            gemm(a, b, out=out, **how)
            assert bool((out == aligned).all()), (n, pitch, first)
            out[...] = -1
            assert bool((memory == -1).all()), (n, pitch, first)


@pytest.mark.usefixtures("wgmma")
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("swapped", [False, True])
def test_rows_of_wgmma(cp: Any, rng: np.random.Generator, precision: str, swapped: bool) -> None:
    """Each tile and storage of the row operand, whose rows stand in an order of its own."""
    for n in WIDTHS:
        a, b = (cp.asarray(normal(rng, *shape)) for shape in ((M, K), (K, n)))
        tiles = set()
        for choice in choices(cp, precision, GemmSizes(1, M, n, K)):
            plan = choice.wgmma
            assert plan is not None
            tile = (plan.storage, plan.block_m, plan.block_n)
            if plan.fused_pack or choice.split_k_slices > 1 or tile in tiles:
                continue
            if choice.swapped != swapped:
                continue
            tiles.add(tile)
            with overridden(choice):
                assert_bits_stay(cp, a, b, n, precision=precision)


@pytest.mark.parametrize("precision", TENSOR)
def test_rows_of_mma_sync(cp: Any, rng: np.random.Generator, precision: str) -> None:
    for n in WIDTHS:
        a, b = (cp.asarray(normal(rng, *shape)) for shape in ((M, K), (K, n)))
        for tile in mma_tiles(PRECISIONS[precision], ARCHS["sm_80"]):
            with overridden(GemmChoice(mma=tile)):
                assert_bits_stay(cp, a, b, n, precision=precision)


@pytest.mark.parametrize("kernels", ["wgmma", "mma.sync"])
def test_an_addend_in_place(cp: Any, rng: np.random.Generator, kernels: str) -> None:
    """Beta reads C where the result is stored, by another lane than the one that stores it."""
    from argand.device import gpu

    if kernels == "wgmma" and gpu(cp.cuda.Device().id).target != "sm_90a":
        pytest.skip("wgmma needs sm_90a")
    for n in WIDTHS:
        a, b, c = (cp.asarray(normal(rng, *s)) for s in ((M, K), (K, n), (M, n)))
        expected = gemm(a, b, c.copy(), precision="tf32", beta=0.5 - 1j, kernels=kernels)
        memory = cp.full((M, n + 4), -1, np.complex64)
        out = memory[:, 1 : n + 1]
        out[...] = c
        gemm(a, b, out, out=out, precision="tf32", beta=0.5 - 1j, kernels=kernels)
        assert bool((out == expected).all()), n
