"""Hermitian products by wgmma whose tiles store their mirror images (an sm_90 GPU)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, herk, launched
from argand.device import arch_for, gpu
from argand.gemm.candidates import candidates
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.tuned import trial

from tests.kernels.herk.herk_cases import assert_hermitian, expected, poisoned, tolerance
from tests.normal import normal

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]


@pytest.mark.parametrize("precision", ["3xfp16", "tf32"])
@pytest.mark.parametrize("op", ["N", "T"])
def test_mirror_images_of_the_largest_tiles(
    cp: Any, rng: np.random.Generator, precision: str, op: Any
) -> None:
    """Rows of the result begin anywhere in a sector, so lanes exchange columns."""
    n, k = 387, 150
    lines, width = (n, k) if op == "N" else (k, n)
    a = cp.asarray(normal(rng, 2, lines, width + width % 2))[..., :width]
    traits = OperandTraits(k_major=op == "N"), OperandTraits(k_major=op == "N", conjugated=True)
    question = Question(PRECISIONS[precision], GemmSizes(2, n, n, k, triangle=True), *traits)
    every = candidates(question, arch_for(90), gpu(a.device.id).sm_count)
    plans = [x for x in every if x.wgmma is not None and x.wgmma.block_n == 128]
    assert {x.wgmma.storage for x in plans if x.wgmma is not None} == {"fp32", "planar"}
    value, size = expected(a.get(), op)
    limit = 2**0.5 * tolerance(precision, k, "cuda")
    for choice in plans:
        out = poisoned(cp, value.shape)
        with trial(choice), launched() as names:
            herk(a, op=op, precision=precision, out=out)
        assert "128x128" in names[0]
        assert_hermitian(out.get())
        assert (abs(out.get() - value) <= limit * size).all()
