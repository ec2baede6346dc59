"""Products of a short k by fused multiply-adds in fp32 registers (an sm_90 GPU)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import gemm, launched
from argand.gemm.choice import GemmChoice
from argand.gemm.fma.plan import FMA_PLANS, MAX_K, FmaPlan

from tests.kernels.gemm.product_cases import OPS, check, normal, repeats_bit_for_bit, stored
from tests.kernels.gemm.sm90.wgmma_cases import overridden

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]
UNSCALED = ("tf32", "3xtf32", "bf16")


@pytest.mark.parametrize("precision", UNSCALED)
@pytest.mark.parametrize("plan", FMA_PLANS, ids=lambda plan: plan.name)
@pytest.mark.parametrize("k", [1, 3, 4, 5, 8, 9, MAX_K])
def test_every_plan(
    cp: Any, rng: np.random.Generator, precision: str, plan: FmaPlan, k: int
) -> None:
    for m, n in ((1, 1), (2, 37), (33, 65), (130, 7), (7, 257)):
        a, b, c = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
        with overridden(GemmChoice(fma=plan)), launched() as names:
            check(cp, a, b, precision=precision)
            check(cp, a, b, c, precision=precision, alpha=0.5 - 2j, beta=-1.25 + 0.75j)
        assert {name.split(":")[0] for name in names} == {f"fma {plan.name}"}


@pytest.mark.parametrize("precision", UNSCALED)
@pytest.mark.parametrize(("m", "n", "k"), [(4, 1, 271), (1, 70, 33), (9, 3, 120), (33, 2, 100)])
def test_lanes_share_results_of_a_long_k(
    cp: Any, rng: np.random.Generator, precision: str, m: int, n: int, k: int
) -> None:
    a, b = normal(rng, 2, m, k), normal(rng, k, n)
    with launched() as names:
        check(cp, a, b, precision=precision)
        check(cp, stored(a, "C"), stored(b, "T"), op_a="C", op_b="T", precision=precision)
    assert any("lanes along k" in name for name in names)


@pytest.mark.parametrize("precision", UNSCALED)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_ops_and_batches(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    for plan in FMA_PLANS:
        for left, right in (((3,), (3,)), ((), (2, 2)), ((4,), ())):
            a, b = normal(rng, *left, 35, 7), normal(rng, *right, 7, 70)
            with overridden(GemmChoice(fma=plan)):
                check(
                    cp, stored(a, op_a), stored(b, op_b), op_a=op_a, op_b=op_b,
                    precision=precision, alpha=1j,
                )  # fmt: skip


@pytest.mark.parametrize("precision", [*UNSCALED, "fp16", "3xfp16"])
def test_the_smallest_products_take_it(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """Scaled precisions by way of those without scales."""
    a, b = normal(rng, 30, 4), normal(rng, 4, 185)
    with launched() as names:
        check(cp, a, b, precision=precision)
    assert all(name.startswith("fma 8x32") for name in names)
    assert repeats_bit_for_bit(lambda: gemm(cp.asarray(a), cp.asarray(b), precision=precision))


def test_results_at_any_stride_and_an_addend_in_place(cp: Any, rng: np.random.Generator) -> None:
    """Nothing beside the result changes."""
    a, b = (cp.asarray(normal(rng, *shape)) for shape in ((35, 5), (5, 70)))
    for plan in FMA_PLANS:
        with overridden(GemmChoice(fma=plan)):
            right = gemm(a, b, precision="3xtf32")
            for turned in (False, True):
                memory = cp.full(
                    (2 * 35, 3 * 70) if not turned else (3 * 70, 2 * 35), -1, "complex64"
                )
                out = memory.T[::2, ::3] if turned else memory[::2, ::3]
                gemm(a, b, precision="3xtf32", out=out)
                assert bool((out == right).all())
                out += 1
                gemm(a, b, out, precision="3xtf32", beta=-1, out=out)
                assert bool((abs(out + 1) < 1e-5 * abs(right).max()).all())
                out[...] = -1
                assert bool((memory == -1).all())


def test_infinities_and_nan_stay_in_their_lines(cp: Any, rng: np.random.Generator) -> None:
    a, b = normal(rng, 20, 6), normal(rng, 6, 40)
    a[3, 2], b[1, 30] = np.nan, np.inf
    for plan in FMA_PLANS:
        for precision in UNSCALED:
            with overridden(GemmChoice(fma=plan)):
                found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
            clean = np.ones(found.shape, bool)
            clean[3], clean[:, 30] = False, False
            assert np.isnan(found[3]).all()
            assert not np.isfinite(found[:, 30]).any()
            assert np.isfinite(found[clean]).all()
