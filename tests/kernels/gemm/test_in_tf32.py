"""Products at 16 bits that kernels of tf32 compute, without a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, gemm
from argand.device import ARCHITECTURES, arch_for
from argand.gemm.candidates import candidates_in_tf32
from argand.gemm.choice import GemmChoice
from argand.gemm.heuristics import choose, estimate
from argand.gemm.in_tf32 import SAME_TILE, product_in_tf32
from argand.gemm.names import computed_name
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm80.heuristics import plan_mma
from argand.rounding import scale_exponents, split
from argand.runtime.plan import WGMMA_TARGET, PlanError

from tests.covers import examples
from tests.kernels.gemm.product_cases import normal
from tests.kernels.precisions import IN_TF32, TENSOR, WITH_COUNTERPART
from workflow.accuracy import bounds
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.probabilistic import accumulation_errors
from workflow.accuracy.references import product_reference

HOPPER = arch_for(90)
SM_COUNT = 132
A, B = OperandTraits(), OperandTraits(k_major=False)


def drawn(rng: np.random.Generator, count: int) -> list[GemmSizes]:
    """Sizes of 1 to 8192, log-uniform."""
    return [GemmSizes(1, *(int(size) for size in 2 ** rng.uniform(0, 13, 3))) for _ in range(count)]


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_16_bits_take_no_longer_than_tf32_by_the_estimates(precision: str) -> None:
    """In tf32 they have every plan of it, as fast, and others only where these are faster."""
    for sizes in drawn(np.random.default_rng(47), examples(60)):
        times = []
        for row in (PRECISIONS["tf32"], PRECISIONS[precision]):
            question = Question(row, sizes, A, B)
            found = choose(question, HOPPER, SM_COUNT)
            times.append(estimate(found, question, SM_COUNT))
        same_tile = precision == "bf16" and found.mma is not None
        assert times[1] <= times[0] * (SAME_TILE if same_tile else 1)


def test_bf16_takes_the_tile_of_tf32_where_no_other_is_clearly_faster() -> None:
    """Products that mma.sync computes in tf32: estimates of two tiles err apart."""
    seen = set()
    for sizes in drawn(np.random.default_rng(53), examples(60)):
        of_tf32, question = (Question(PRECISIONS[x], sizes, A, B) for x in ("tf32", "bf16"))
        if choose(of_tf32, HOPPER, SM_COUNT).family != "mma.sync":
            continue
        found, plan = choose(question, HOPPER, SM_COUNT), plan_mma(of_tf32, HOPPER, SM_COUNT)
        if found.mma is None:  # in tf32 or by another tile, or another family
            seen.add(found.family if not found.in_tf32 else "tf32")
        else:
            seen.add("the same")
            assert found.name == f"mma.sync {plan.name}"
            assert not found.in_tf32
    assert "the same" in seen
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("batch", "k", "in_tf32"), [(35, 46, True), (35, 65, False), (2, 46, False)]
)
def test_bf16_of_a_short_k_and_large_results_is_computed_in_tf32(
    batch: int, k: int, in_tf32: bool
) -> None:
    """By tf32's own plan, which is estimated alike."""
    sizes = GemmSizes(batch, 361, 5038, k)
    found = choose(Question(PRECISIONS["bf16"], sizes, A, B), HOPPER, SM_COUNT)
    assert found.family == "wgmma"
    assert found.in_tf32 == in_tf32


@pytest.mark.parametrize("precision", IN_TF32)
def test_what_is_asked_for_stays(precision: str) -> None:
    """A family, packed operands, pairs, results of 16 bits, and cards without an estimate."""
    row, sizes = PRECISIONS[precision], GemmSizes(1, 100, 90, 80)
    assert choose(Question(row, sizes, A, B), HOPPER, SM_COUNT).in_tf32 == (precision != "bf16")
    assert candidates_in_tf32(Question(row, sizes, A, B), HOPPER, SM_COUNT)
    for family in ("wgmma", "mma.sync"):
        assert not choose(Question(row, sizes, A, B), HOPPER, SM_COUNT, family).in_tf32  # type: ignore[arg-type]
    for change in ({"packed": True}, {"packed": True, "copied": True}, {"half": True}):
        for a, b in ((replace(A, **change), B), (A, replace(B, **change))):
            assert candidates_in_tf32(Question(row, sizes, a, b), HOPPER, SM_COUNT) == []
    assert (
        candidates_in_tf32(Question(row, replace(sizes, half_output=True), A, B), HOPPER, SM_COUNT)
        == []
    )
    for arch in ARCHITECTURES:
        if arch.target != WGMMA_TARGET:
            assert candidates_in_tf32(Question(row, sizes, A, B), arch, SM_COUNT) == []


def test_only_scaled_precisions_have_a_counterpart() -> None:
    for name in TENSOR:
        row = PRECISIONS[name]
        assert row.scaled or row.counterpart is None
        assert not (row.counterpart and row.counterpart.scaled)
    with pytest.raises(PlanError, match="no kernel of tf32 computes tf32"):
        GemmChoice(in_tf32=True).computed_at(PRECISIONS["tf32"])


@pytest.mark.parametrize("precision", IN_TF32)
def test_names_say_where_it_is_computed(precision: str) -> None:
    row = PRECISIONS[precision]
    plain = GemmChoice(in_tf32=True).computed_at(row)
    assert GemmChoice(in_tf32=True).name == "mma.sync, in tf32"
    assert computed_name("mma.sync", row, row) == "mma.sync"
    scales = " without scales" if row.scaled else ""
    assert computed_name("mma.sync", row, plain) == f"mma.sync, in {plain.name}{scales}"


def test_bf16_in_tf32_has_its_bits() -> None:
    row = PRECISIONS["bf16"]
    plain = product_in_tf32(row)
    assert plain is not None
    x = np.random.default_rng(5).integers(0, 2**32, 4096, dtype=np.uint32).view(np.float32)
    np.testing.assert_array_equal(split(x, plain), split(x, row))
    assert plain.u == row.u
    assert plain.operand.mma_k == PRECISIONS["tf32"].operand.mma_k


@pytest.mark.parametrize("precision", WITH_COUNTERPART)
def test_operands_have_the_same_bits_where_scales_keep_them_all(precision: str) -> None:
    """Elsewhere they are as close: with ties, and lines that spread beyond the full range.

    Where terms are not normal numbers scales lose up to the floor (`suspects._scaling_difference`).
    """
    row = PRECISIONS[precision]
    plain = row.without_scales
    assert plain is not None
    assert row.full_range is not None
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**23, (40, 64), dtype=np.uint32)
    bits[:, ::3] &= np.uint32(0x7FF000)  # ties of 11 bits
    powers = rng.integers(127 - 60, 127, bits.shape, dtype=np.uint32)
    x = (bits | (powers << np.uint32(23))).view(np.float32)
    x[:, 0] = 1.5
    x = x.astype(np.complex64)
    exponents = scale_exponents(x, -1, row.operand)
    back = np.ldexp(1.0, -exponents)
    scaled = sum(term.astype(complex) * back for term in split(x, row, exponents)).real
    whole = sum(term.astype(complex) for term in split(x, plain)).real
    near = x.real >= 1.5 * 2.0 ** (2 - row.full_range)
    assert near.any()
    assert not near.all()
    np.testing.assert_array_equal(scaled[near], whole[near])
    assert (abs(whole - scaled) <= 2 * row.scaled_floor * 1.5).all()
    assert (abs(whole - x.real) <= row.u * x.real).all()


@pytest.mark.parametrize("precision", IN_TF32)
def test_bounds_in_tf32_are_at_most_those_of_16_bits(precision: str) -> None:
    """A result within the ones is within the others, at every k, on a GPU."""
    row = PRECISIONS[precision]
    plain = product_in_tf32(row)
    assert plain is not None
    for k in (1, 7, 300, 20_000):
        for scalars in ({}, {"alpha": 2 - 1j, "beta": 0.5}):
            ours = bounds.product_bound(row, k, "cuda", **scalars)
            assert bounds.product_bound(plain, k, "cuda", **scalars) == ours
            assert accumulation_errors(plain, k, "cuda") == accumulation_errors(row, k, "cuda")
        lost, lost_plain = (bounds.underflow(x, "cuda", k) for x in (row, plain))
        assert lost_plain.operand <= lost.operand
        assert lost_plain.of_largest <= lost.of_largest
        assert lost_plain.result == lost.result


def operands(rng: np.random.Generator, what: str) -> tuple[Any, Any]:
    """A (40, 90) and B (90, 30) of lines that spread wider than scaled precisions hold."""
    a, b = normal(rng, 40, 90), normal(rng, 90, 30)
    if what == "all of them":
        a *= np.float32(2.0) ** rng.integers(-50, 1, a.shape).astype(np.float32)
        b *= np.float32(2.0) ** rng.integers(-50, 1, b.shape).astype(np.float32)
    else:  # the largest of each row meets a zero
        a *= np.float32(2.0**-50)
        a[:, 0], b[0, ::2] = 1, 0
    return a, b


@pytest.mark.parametrize("precision", WITH_COUNTERPART)
@pytest.mark.parametrize("what", ["all of them", "results of what scales flush"])
def test_rows_of_a_huge_spread_are_verified_at_the_precision_that_was_asked(
    precision: str, what: str
) -> None:
    """The CPU's model of the precision without scales, assessed as a GPU's of the scaled one."""
    row = PRECISIONS[precision]
    a, b = operands(np.random.default_rng(7), what)
    result = gemm(a, b, precision=product_in_tf32(row))
    found = assess_product(product_reference(a, b), result, row, backend="cuda")
    assert found.verified, found.reason
    assert found.lines_out_of_range == (70 if what == "all of them" else 40)


@pytest.mark.parametrize("precision", WITH_COUNTERPART)
def test_slices_that_scale_themselves_are_verified(precision: str) -> None:
    """Numbers that are small in their line, but not in their slice, stay."""
    row, rng = PRECISIONS[precision], np.random.default_rng(8)
    a, b = operands(rng, "results of what scales flush")
    result = gemm(a[:, :45], b[:45], precision=row) + gemm(a[:, 45:], b[45:], precision=row)
    found = assess_product(product_reference(a, b), result, row, backend="cuda")
    assert found.verified, found.reason
    wrong = result.copy()
    wrong[:, 0] *= 1 + 2.0**-4  # of what is flushed, as much as scales may take
    wrong[:, 1] *= 1 + 2.0**-4
    assert not assess_product(product_reference(a, b), wrong, row, backend="cuda").verified


def test_ties_that_go_away_from_zero_are_verified_and_hide_no_wrong_element() -> None:
    """As tf32 rounds them, and fp16 without scales: half of 12-bit integers are ties."""
    row, rng = PRECISIONS["fp16"], np.random.default_rng(9)
    for k in (2, 90):
        a, b = (
            rng.integers(-4095, 4096, (*shape, 2)).astype(np.float32).view(np.complex64)[..., 0]
            for shape in ((40, k), (k, 70))
        )
        reference = product_reference(a, b)
        result = gemm(a, b, precision=product_in_tf32(row))
        assert assess_product(reference, result, row, backend="cuda").verified
        assert not assess_product(reference, result, row, backend="cpu").verified
        result[7, 11] *= 1.01
        assert not assess_product(reference, result, row, backend="cuda").verified
