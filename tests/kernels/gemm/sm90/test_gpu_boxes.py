"""Boxes of a TMA epilogue where the next tile's come soon (an sm_90 GPU)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import gemm
from argand.gemm.question import GemmSizes
from argand.gemm.sm90.plan import STORE_BOX_SIDE

from tests.kernels.gemm.sm90.wgmma_cases import choices, overridden

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]
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
