"""Fused packing of column operands, and boxes of a TMA epilogue (an sm_90 GPU)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Device, gemm, pack
from argand.gemm.candidates import candidates
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm90.plan import STORE_BOX_SIDE

from tests.kernels.gemm.product_cases import assert_within, magnitude, normal, summation
from tests.kernels.gemm.sm90.wgmma_cases import choices, overridden

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]


@pytest.mark.parametrize(
    "shape", [(1, 130, 70, 66), (3, 300, 200, 260), (2, 68, 900, 67), (1, 515, 129, 2050),
              (40, 140, 260, 520), (1, 1030, 1100, 1024)]
)  # fmt: skip
def test_fused_packing_changes_no_bit(
    cp: Any, rng: np.random.Generator, shape: tuple[int, int, int, int]
) -> None:
    """Both operands in turn are the column operand; one is to be conjugated."""
    batch, m, n, k = shape
    wide = k + k % 2  # rows begin at multiples of 16 bytes
    a = cp.asarray(normal(rng, batch, m, wide))[..., :k]
    b = cp.asarray(normal(rng, batch, n, wide))[..., :k]
    nbytes = 8 * batch * (m + n) * (k + 64) * 4
    found = 0
    for choice in choices(cp, "tf32", GemmSizes(*shape), k_major=True):
        assert choice.wgmma is not None
        if not choice.wgmma.fused_pack:
            continue
        found += 1
        results = []
        for packs in (False, True, True):
            # What a call before left in the memory of this one must not be taken for planes.
            poison = cp.full(nbytes // 4, np.nan, cp.float32)
            del poison
            with overridden(replace(choice, wgmma=replace(choice.wgmma, fused_pack=packs))):
                results.append(gemm(a, b, op_b="C", precision="tf32"))
        assert all(bool((x == results[0]).all()) for x in results)
    assert found


@pytest.mark.parametrize("shape", [(1, 130, 70, 66), (3, 200, 300, 260), (40, 140, 260, 520),
                                   (2, 260, 2200, 256)])  # fmt: skip
@pytest.mark.parametrize("op", ["N", "C"])
def test_fused_packing_beside_planes(
    cp: Any, rng: np.random.Generator, gpu: Device, shape: tuple[int, int, int, int], op: str
) -> None:
    """The row operand was packed beforehand; the last shape has an overlapped epilogue."""
    batch, m, n, k = shape
    a = normal(rng, batch, m, k)
    b = normal(rng, batch, *((k, n) if op == "N" else (n, k)))
    model = gemm(a, b, op_b=op, precision="tf32")
    slack = summation(k, "tf32") * magnitude(a, b, None, op_b=op)
    a, packed = cp.asarray(a), pack(cp.asarray(b), "tf32", side="b", op=op)
    traits = OperandTraits(), OperandTraits(packed=True)
    found = 0
    for choice in candidates(
        Question(PRECISIONS["tf32"], GemmSizes(*shape), *traits), gpu.require_arch(), gpu.sm_count
    ):
        if choice.wgmma is None or not choice.wgmma.fused_pack:
            continue
        found += 1
        results = []
        for packs in (False, True, True):
            poison = cp.full(8 * batch * m * (k + 64), np.nan, cp.float32)
            del poison
            with overridden(replace(choice, wgmma=replace(choice.wgmma, fused_pack=packs))):
                results.append(gemm(a, packed, precision="tf32"))
        assert all(bool((x == results[0]).all()) for x in results)
        assert_within(results[0].get(), model, slack)
    assert found


COPIED = 1 << 27
"""Bytes of a copy on another stream, which takes longer than a product."""


@pytest.mark.parametrize("precision", ["tf32", "bf16", "3xfp16"])
def test_a_box_waits_for_the_one_in_its_place(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """Small integers, of which each product is exact, of a k that takes as long as a store.

    Copies on another stream delay the stores. Where a tile has an odd number of boxes, the first
    one of a block's next tile takes the place of its last.
    """
    m, n, k = 2308, 2100, 16
    a, b = (
        cp.asarray((rng.integers(-4, 5, x) + 1j * rng.integers(-4, 5, x)).astype(np.complex64))
        for x in ((m, k), (k, n))
    )
    exact = cp.asarray(a.get() @ b.get())
    source, target = (cp.zeros(COPIED, cp.uint8) for _ in range(2))
    stream = cp.cuda.Stream(non_blocking=True)
    outs = [cp.empty_like(exact) for _ in range(4)]
    odd = 0
    for choice in choices(cp, precision, GemmSizes(1, m, n, k)):
        assert choice.wgmma is not None
        odd += choice.wgmma.block_n // STORE_BOX_SIDE % 2
        with stream:
            cp.copyto(target, source)
        with overridden(choice):
            for out in outs:
                gemm(a, b, precision=precision, out=out)
        assert all(bool((out == exact).all()) for out in outs)
    assert odd
