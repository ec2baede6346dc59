"""Results whose rows begin in the middle of 16 bytes, and views in larger arrays (a GPU).

Neighbouring lanes exchange columns there, so that vectors are aligned. Every element must get the
bits that it gets in a result of aligned rows, and nothing beside the result may change.

Pitches are even and lengths odd, so that TMA can address a line whose end lies within 16 bytes.
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
from tests.kernels.gemm.product_cases import (
    OPS,
    assert_within,
    magnitude,
    normal,
    stored,
    summation,
)
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


SHAPES = ((69, 7, 43), (130, 65, 33), (301, 129, 95), (1000, 301, 201))


def framed(cp: Any, x: Any, fill: complex) -> tuple[Any, Any]:
    """An array of even pitch that begins at 16 bytes, and the view of its middle that holds x."""
    rows, columns = x.shape
    whole = cp.full((rows + 2, columns + columns % 2 + 2), fill, cp.complex64)
    view = whole[1 : rows + 1, :columns]
    view[...] = cp.asarray(x)
    return whole, view


@pytest.mark.parametrize("precision", [*TENSOR, "fp32", "8xint8"])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("turned", [False, True])
def test_views_of_odd_length(
    cp: Any, rng: np.random.Generator, precision: str, op: str, turned: bool
) -> None:
    for m, n, k in SHAPES:
        a, b = normal(rng, m, k), normal(rng, k, n)
        _, left = framed(cp, stored(a, op), np.nan)
        _, right = framed(cp, stored(b, op), np.nan)
        slack = summation(k, "fp32" if precision == "8xint8" else precision)
        for c in (None, normal(rng, m, n)):
            start = np.full((m, n), np.nan, np.complex64) if c is None else c
            whole, out = framed(cp, start.T if turned else start, -1)
            result = out.T if turned else out
            how = {"precision": precision, "beta": 0 if c is None else 0.5}
            addend = None if c is None else result
            gemm(left, right, addend, out=result, op_a=op, op_b=op, **how)
            model = gemm(a, b, c, **how)
            assert_within(result.get(), model, slack * magnitude(a, b, c, beta=how["beta"]))
            out[...] = -1
            assert bool((whole == -1).all()), (m, n, k)
