"""Products at 16 bits that kernels of tf32 compute (an sm_90 GPU)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, gemm, launched, pack
from argand.gemm.candidates import candidates_in_tf32
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.runtime.plan import PlanError

from tests.kernels.gemm.product_cases import (
    OPS,
    assert_contained,
    check,
    nonfinite,
    normal,
    repeats_bit_for_bit,
    stored,
)
from tests.kernels.gemm.sm90.wgmma_cases import overridden
from tests.kernels.precisions import IN_TF32, SCALED
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]
SMALL = (70, 45, 333)


@pytest.mark.parametrize("precision", IN_TF32)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_small_products_are_computed_in_tf32(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    """By the call's own choice, which its name says; the model rounds the same operands.

    bf16 may take its own kernels: the estimates of both are near each other.
    """
    m, n, k = SMALL
    a, b, c = stored(normal(rng, m, k), op_a), stored(normal(rng, k, n), op_b), normal(rng, m, n)
    how: dict[str, Any] = {"precision": precision, "op_a": op_a, "op_b": op_b}
    for _ in range(2):  # the second call is from the call cache
        with launched() as names:
            check(cp, a, b, c, alpha=0.5 - 2j, beta=1.5j, **how)
        (name,) = names
        if precision in SCALED:
            assert ", in tf32" in name or ", in 3xtf32" in name
    for kernels in ("mma.sync", "wgmma"):
        with launched() as names:
            check(cp, a, b, kernels=kernels, **how)
        assert not any("tf32" in name for name in names)


@pytest.mark.parametrize("precision", IN_TF32)
def test_every_candidate_in_tf32(cp: Any, rng: np.random.Generator, precision: str) -> None:
    from argand.device import gpu

    m, n, k = 150, 90, 1100
    a, b = normal(rng, 2, m, k), normal(rng, k, n)
    a[:, 5] *= np.float32(2.0**118)  # beyond what `round_moderate_to_tf32` takes
    beyond, infinite = nonfinite(rng)
    traits = OperandTraits(), OperandTraits(k_major=False, batched=False)
    card = gpu(cp.cuda.Device().id)
    every = candidates_in_tf32(
        Question(PRECISIONS[precision], GemmSizes(2, m, n, k), *traits),
        card.require_arch(),
        card.sm_count,
    )
    assert {choice.family for choice in every} == {"wgmma", "mma.sync"}
    for choice in every:
        with overridden(choice), launched() as names:
            check(cp, a, b, precision=precision)
        assert "tf32" in names[0]
        with overridden(replace(choice, split_k_slices=1)):  # of a short k
            found = gemm(cp.asarray(beyond), cp.asarray(infinite), precision=precision)
        assert_contained(found.get())


@pytest.mark.parametrize("precision", SCALED)
def test_rows_of_a_huge_spread(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """Components that scales would flush stay, and the bound of the scaled precision holds."""
    row, (m, n, k) = PRECISIONS[precision], SMALL
    a, b = normal(rng, m, k), normal(rng, k, n)
    a *= np.float32(2.0) ** rng.integers(-50, 1, a.shape).astype(np.float32)
    b *= np.float32(2.0) ** rng.integers(-50, 1, b.shape).astype(np.float32)
    with launched() as names:
        found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
    assert "without scales" in names[0]
    accuracy = assess_product(product_reference(a, b), found, row, backend="cuda")
    assert accuracy.verified, accuracy.reason
    # The largest of a row of A meets a zero, so a result rests on what is 2^-60 of it.
    a, b = np.ones((20, 2), np.complex64), np.array([[0], [1]], np.complex64)
    a[:, 1] = np.ldexp(rng.uniform(1, 2, 20), -60).astype(np.float32)
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
    np.testing.assert_allclose(found[:, 0], a[:, 1], rtol=2 * row.u + 2.0**-23)


@pytest.mark.parametrize("precision", SCALED)
def test_a_long_k_is_within_the_bound_of_the_scaled_precision(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """tf32 adds half as many products in an instruction, which truncates as often again."""
    a, b = normal(rng, 40, 20_000), normal(rng, 20_000, 30)
    for choice in (GemmChoice(in_tf32=True), None):
        if choice is None:
            found = gemm(cp.asarray(a), cp.asarray(b), precision=precision)
        else:
            with overridden(choice):
                found = gemm(cp.asarray(a), cp.asarray(b), precision=precision)
        accuracy = assess_product(
            product_reference(a, b), found.get(), PRECISIONS[precision], backend="cuda"
        )
        assert accuracy.verified, accuracy.reason


@pytest.mark.parametrize("precision", IN_TF32)
@pytest.mark.parametrize("side", ["a", "b"])
def test_packed_operands_keep_their_format(
    cp: Any, rng: np.random.Generator, precision: str, side: str
) -> None:
    m, n, k = SMALL
    a, b = cp.asarray(normal(rng, m, k)), cp.asarray(normal(rng, k, n))
    given = (pack(a, precision, side="a"), b) if side == "a" else (a, pack(b, precision, side="b"))
    with launched() as names:
        assert repeats_bit_for_bit(lambda: gemm(*given, precision=precision))
    assert not any("tf32" in name for name in names)
    with (
        overridden(GemmChoice(in_tf32=True)),
        pytest.raises(PlanError, match=f"in the format of {precision}"),
    ):
        gemm(*given, precision=precision)
