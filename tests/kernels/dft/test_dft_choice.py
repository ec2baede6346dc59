"""Plans of transforms without a GPU: tables as lanes read them, legality, the choice."""

from __future__ import annotations

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, Arch
from argand.dft.butterfly import ButterflyPlan
from argand.dft.cluster import ClusterPlan
from argand.dft.fragments import fragments, fused_twiddles
from argand.dft.hankel import HankelPlan
from argand.dft.heuristics import (
    best_of_each_kind,
    candidates,
    choose,
    ordered,
    own_plan,
)
from argand.dft.legality import wide_fits
from argand.dft.library_choice import FAST_PRIME, LibraryKernels
from argand.dft.method import method_for, prime_factors
from argand.dft.plan import DensePlan, TwoFactorPlan, folded_bytes, padded
from argand.dft.plan_words import plan_in, plan_words
from argand.dft.registers import registers
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.tables import folded_matrices, twiddles
from argand.dft.truncation import TRUNCATION_BIAS, truncation_bias

from tests.covers import EXHAUSTIVE, examples
from tests.kernels.compiled import ARCHS

HOPPER = next(arch for arch in ARCHITECTURES if arch.target == "sm_90a")
OURS = [name for name, row in PRECISIONS.items() if not row.exact_operands]


def values(words: np.ndarray, precision: str) -> np.ndarray:
    """The numbers of a lane's two words, in the order of their k: (..., mma_k / 4)."""
    operand = PRECISIONS[precision].operand
    if operand.bytes == 4:
        return words.view(np.float32)
    bits = words.view(f"u{operand.bytes}").astype(np.int64)
    stored = operand.significand - 1
    exponent = bits >> stored & (1 << 8 * operand.bytes - 1 - stored) - 1
    fraction = bits & (1 << stored) - 1 | (exponent > 0).astype(np.int64) << stored
    size = np.ldexp(fraction * 1.0, np.maximum(exponent, 1) - 1 + operand.min_exponent - stored)
    return np.where(bits >> 8 * operand.bytes - 1, -size, size).astype(np.float32)


@pytest.mark.parametrize("precision", OURS)
@pytest.mark.parametrize(("length", "warps"), [(2, 1), (7, 1), (97, 1), (100, 2), (251, 3)])
def test_fragments_hold_the_folded_matrices(length: int, warps: int, precision: str) -> None:
    row, half = PRECISIONS[precision], length // 2
    found = fragments(length, warps, row)
    assert found.nbytes == folded_bytes(length, warps, row)
    mma_k = row.operand.mma_k
    scale = 2.0**row.operand.scaled_exponent if row.scaled else 1.0
    slices, tiles = found.shape[:2]
    seen = np.zeros((2, slices * mma_k, tiles * 8))
    for lane in range(32):
        g, t = lane // 4, lane % 4
        n = 8 * np.arange(tiles) + g // 2 + 4 * (g % 2)
        for which in range(2):
            for term in range(row.terms):
                held = np.ascontiguousarray(found[:, :, term, lane, 2 * which : 2 * which + 2])
                numbers = values(held, precision)
                for j in range(mma_k // 4):
                    k = mma_k * np.arange(slices) + t + 4 * j
                    seen[which][np.ix_(k, n)] += numbers[..., j]
    for matrix, table in zip(folded_matrices(length), seen, strict=True):
        cuts = (slices - np.arange(half) // mma_k)[:, None]
        compensated = matrix * (1 + truncation_bias(row) * cuts) * scale
        np.testing.assert_allclose(
            table[:half, :half], compensated, rtol=1.01 * row.u, atol=2.0**-24 * scale
        )
        assert (table[half:] == 0).all()
        assert (table[:, half:] == 0).all()


def test_what_is_given_back_for_truncation_is_less_than_the_bound_of_it() -> None:
    assert 0 < TRUNCATION_BIAS < 2.0**-23
    assert (
        truncation_bias(PRECISIONS["3xfp16"])
        == truncation_bias(PRECISIONS["3xtf32"])
        == TRUNCATION_BIAS
    )
    assert truncation_bias(PRECISIONS["fp16"]) == 0


def test_twiddles_stand_where_lanes_look() -> None:
    first, second, rows = 24, 15, 1
    together, turns = fused_twiddles(first, second, rows)
    exact = twiddles(first, second)
    for lane in range(32):
        for tile in range(together.shape[1]):
            for row in range(2):
                for c in range(2):
                    n, k = lane // 4 + 8 * row, 8 * tile + 1 + lane % 4 + 4 * c
                    if n < second and k < first:
                        found = together[0, tile, row, lane, c]
                        assert abs(found - exact[k, n]) < 1e-7
                        # The mirrored one is made of it.
                        assert abs(turns[n] * found.conj() - exact[first - k, n]) < 2e-7


def test_lines_do_not_conflict() -> None:
    for width in range(2, 200, 2):
        assert padded(width) >= width
        assert padded(width) % 8 == 4
        places = {(line * padded(width) + k) % 16 for line in range(4) for k in range(4)}
        assert len(places) == 16
    assert padded(15) == 15


def test_wide_copies() -> None:
    assert wide_fits("dense", 97, 97)
    assert not wide_fits("dense", 97, 98)
    assert wide_fits("dense", 96, 98)
    assert not wide_fits("dense", 100, 102)
    assert wide_fits("product", 1024, 1026)
    assert not wide_fits("product", 1024, 1025)
    assert not wide_fits("product", 375, 375)
    assert not wide_fits("convolution", 1009, 1009)


def test_registers_are_dealt_out_by_fours_of_warps() -> None:
    assert [registers(32 * warps) for warps in (1, 8, 9, 12, 13, 16, 17)] == [
        255, 255, 168, 168, 128, 128, 96,
    ]  # fmt: skip


@pytest.mark.parametrize("precision", OURS)
def test_every_length_runs_or_says_why(precision: str) -> None:
    """In the short run every sixth length at one precision, each precision at some of them."""
    row = PRECISIONS[precision]
    lengths = (*range(1, 600), 1009, 2039, 4093, 8191, 10_007, 65_537, 1 << 20)
    some = lengths[OURS.index(precision) * 6 :: 6 * len(OURS)]
    for length in lengths if EXHAUSTIVE else some:
        choice = choose(method_for(length), row, HOPPER, wide=False)
        assert str(choice).startswith("cufft: " if choice.plan is None else choice.plan.kind)
        if choice.plan is not None:
            assert choice.plan.length == length
            assert choice.plan.shared_bytes(row) <= HOPPER.shared_bytes


def test_where_the_kernels_are_ours() -> None:
    row = PRECISIONS["3xfp16"]
    kinds = {
        32: DensePlan, 67: DensePlan, 97: DensePlan, 127: DensePlan, 131: HankelPlan,
        251: HankelPlan, 509: HankelPlan, 641: ButterflyPlan, 58 * 59: TwoFactorPlan,
        1860: TwoFactorPlan, 773: ButterflyPlan, 1009: ButterflyPlan, 2039: ButterflyPlan,
        4093: ButterflyPlan, 8191: ButterflyPlan, 10_007: ButterflyPlan, 16_384: SingleCtaPlan,
        32_768: ClusterPlan, 131_072: ClusterPlan,
    }  # fmt: skip
    for length, kind in kinds.items():
        method = method_for(length)
        wide = wide_fits(method.kind, length, length)
        assert isinstance(choose(method, row, HOPPER, wide=wide).plan, kind), length
    for length in (64, 100, 128, 1000, 1024, 4096):
        assert "cufft: faster" in str(choose(method_for(length), row, HOPPER, wide=True))
    for length in (8192, 1 << 18, 1 << 20, 15 << 16):
        assert "cufft: no kernel of ours" in str(choose(method_for(length), row, HOPPER, wide=True))
    ampere = next(arch for arch in ARCHITECTURES if arch.target == "sm_80")
    assert isinstance(choose(method_for(509), row, ampere, wide=True).plan, DensePlan)
    assert isinstance(choose(method_for(521), row, ampere, wide=True).plan, ButterflyPlan)
    split = PRECISIONS["3xtf32"]
    assert isinstance(choose(method_for(127), split, HOPPER, wide=True).plan, DensePlan)
    for length in (131, 251, 509):
        choice = choose(method_for(length), split, HOPPER, wide=False)
        assert isinstance(choice.plan, ButterflyPlan)
        assert str(choice).endswith("in fp32")
    butterflies = own_plan(method_for(8191), PRECISIONS["3xtf32"], HOPPER, wide=False)
    assert isinstance(butterflies, ButterflyPlan)
    for length in (64, 100, 128, 1000, 1024, 4096, 2039, 4093):
        assert own_plan(method_for(length), row, HOPPER, wide=True) is not None
    assert choose(None, PRECISIONS["fp64"], HOPPER, wide=True).plan is None


def test_candidates_of_convolutions_fit() -> None:
    row = PRECISIONS["3xfp16"]
    for length, most in ((1009, 3), (10_007, 1)):
        every = candidates(method_for(length), row, HOPPER, wide=False)
        found = [plan for plan in every if isinstance(plan, ButterflyPlan)]
        assert {plan.groups for plan in found} >= {most}
        for plan in found:
            assert plan.size == length - 1 if plan.rader else plan.size >= 2 * length - 1
            assert plan.method.length == length
        # 10006 is 2 times a prime.
        assert {plan.rader for plan in found} == ({False, True} if length == 1009 else {False})


@pytest.mark.parametrize("arch", ARCHS.values(), ids=lambda arch: arch.target)
def test_no_length_up_to_a_million_lacks_a_plan(rng: np.random.Generator, arch: Arch) -> None:
    """Lengths of a prime factor above cuFFT's radices, which cuFFT convolves too."""
    row = PRECISIONS["3xfp16"]
    lengths = [
        254, 262, 508, 1018, 2018, 13_003, 14_009, 16_382, 20_014, 57_337, 65_537, 262_139,
        524_287, 1_000_003, 1_048_573, *rng.integers(769, 1 << 20, examples(60)),
        *rng.integers(129, 4000, examples(60)),
    ]  # fmt: skip
    for length in map(int, lengths):
        if max(prime_factors(length)) > FAST_PRIME:
            plan = own_plan(method_for(length), row, arch, wide=False)
            assert plan is not None, length
            assert plan.length == length


@pytest.mark.parametrize(
    ("length", "kind"),
    [(29, "dense"), (58, "dense"), (145, None), (1860, "two_factor"), (3700, None),
     (194, "butterfly"), (777, None), (869, "butterfly"), (899, "two_factor"),
     (915, "two_factor"), (928, None), (2712, "two_factor"), (3616, "two_factor"),
     (3660, "two_factor"), (5887, None), (10_609, "two_factor"), (13_560, "two_factor")],
)  # fmt: skip
def test_lengths_of_two_ways_and_the_library(length: int, kind: str | None) -> None:
    """As they were measured: products that waste what warps hold, and cuFFT's primes 29 and 31."""
    method = method_for(length)
    wide = wide_fits(method.kind, length, length)
    found = choose(method, PRECISIONS["3xfp16"], HOPPER, wide=wide)
    assert getattr(found.plan, "kind", None) == kind


@pytest.mark.parametrize("precision", ["tf32", "fp16"])
@pytest.mark.parametrize(
    ("length", "kind"),
    [(36, "dense"), (100, "dense"), (88, None), (102, None), (125, "dense"), (155, None),
     (209, None), (332, "butterfly"), (455, None), (551, None), (777, None), (1421, None),
     (2120, "two_factor"), (8073, None)],
)  # fmt: skip
def test_one_term_is_faster_where_two_are_not(
    length: int, kind: str | None, precision: str
) -> None:
    """As they were measured: dense plans, and products without waste."""
    method = method_for(length)
    wide = wide_fits(method.kind, length, length)
    found = choose(method, PRECISIONS[precision], HOPPER, wide=wide).plan
    assert getattr(found, "kind", None) == kind


@pytest.mark.parametrize("precision", ["3xfp16", "tf32"])
@pytest.mark.parametrize(
    ("length", "ours"),
    [(14, False), (15, True), (19, False), (23, False), (24, False), (29, True), (39, False),
     (44, True), (65, True), (78, False), (105, True), (115, True)],
)  # fmt: skip
def test_dense_lengths_of_small_primes(length: int, ours: bool, precision: str) -> None:
    """As they were measured; where cuFFT is slow follows from no rule of their factors."""
    choice = choose(method_for(length), PRECISIONS[precision], HOPPER, wide=length % 2 == 0)
    assert (choice.plan is not None) == ours
    assert not choice.asks


def test_dense_lengths_at_3xtf32() -> None:
    """Products of tf32 take twice the instructions of 16 bits."""
    row = PRECISIONS["3xtf32"]
    ours = {
        length for length in range(15, 128) if max(prime_factors(length)) <= FAST_PRIME
        and choose(method_for(length), row, HOPPER, wide=False).plan is not None
    }  # fmt: skip
    assert ours == {15, 21, 25, 27, 28, 30, 32, 42, 44, 45, 46, 49, 50, 51, 54, 55, 57}


def test_a_prime_of_one_term_is_dense_or_a_convolution() -> None:
    for length, kind in ((419, DensePlan), (433, ButterflyPlan), (509, ButterflyPlan)):
        plan = own_plan(method_for(length), PRECISIONS["tf32"], HOPPER, wide=False)
        assert isinstance(plan, kind)


def test_short_dense_rows_come_by_two_tiles() -> None:
    for length, tiles in ((13, 1), (15, 2), (24, 1), (35, 2), (42, 1)):
        plan = own_plan(method_for(length), PRECISIONS["tf32"], HOPPER, wide=False)
        assert isinstance(plan, DensePlan)
        assert plan.m_tiles == tiles


@pytest.mark.parametrize(
    ("length", "numbers", "precision", "kind"),
    [(782, 0, "tf32", "two_factor"), (4180, 0, "3xfp16", "two_factor"),
     (9425, 0, "3xtf32", "butterfly"), (12_000, 0, "3xfp16", "two_factor"),
     (1218, 6, "tf32", "two_factor"), (1218, 6, "3xfp16", "two_factor"), (1218, 6, "3xtf32", None),
     (1740, 29, "tf32", None), (2496, 12, "fp16", "two_factor"), (2496, 12, "3xfp16", None),
     (1131, 3, "3xtf32", "butterfly"), (3509, 11, "tf32", None), (1972, 4, "3xfp16", None),
     (247, 13, "tf32", None), (308, 4, "tf32", None)],
)  # fmt: skip
def test_kernels_of_cufft_decide(
    length: int, numbers: int, precision: str, kind: str | None
) -> None:
    """As an H200's cuFFT was asked and measured: several kernels, and threads without work."""
    method, row = method_for(length), PRECISIONS[precision]
    wide = wide_fits(method.kind, length, length)
    by_factors = choose(method, row, HOPPER, wide=wide)
    assert by_factors.plan is None
    assert by_factors.asks
    kernels = LibraryKernels(several=numbers == 0, numbers=numbers)
    found = choose(method, row, HOPPER, wide=wide, library=kernels)
    assert getattr(found.plan, "kind", None) == kind
    assert not found.asks


def test_two_factors_are_ranked_by_warps_that_compute() -> None:
    """Eight warps hold 128 transforms where a stage has 41, and are 1.2 times as slow as three."""
    plan = own_plan(method_for(4797), PRECISIONS["fp16"], HOPPER, wide=False)
    assert isinstance(plan, TwoFactorPlan)
    assert (plan.warps, plan.groups, plan.buffers) == (3, 2, 2)


@pytest.mark.parametrize(
    ("length", "ours"),
    [(14_848, False), (24_389, False), (41_984, False), (49_664, True), (79_507, True),
     (115_168, True), (229_616, True), (999_424, False), (1_040_384, True)],
)  # fmt: skip
def test_cufft_has_butterflies_of_some_primes(length: int, ours: bool) -> None:
    """Long lengths as they were measured: of 29, 29^3, 41, 97, 43^3, 59 x 61, 113 x 127."""
    found = choose(method_for(length), PRECISIONS["3xfp16"], HOPPER, wide=False)
    assert (found.plan is not None) == ours
    if not ours:
        assert "prime factors it has butterflies of" in str(found)


def test_the_best_of_each_kind() -> None:
    row = PRECISIONS["3xfp16"]
    plans = candidates(method_for(1009), row, HOPPER, wide=False)
    plans += candidates(method_for(14_009), row, HOPPER, wide=False)
    found = best_of_each_kind(plans, 2, row)
    assert [plan.kind for plan in found] == [
        "butterfly",
        "butterfly",
        "three_kernel",
        "three_kernel",
    ]
    assert found[0] == ordered(plans, row)[0]


@pytest.mark.parametrize("length", [7, 131, 255, 1024, 1009, 14_009, 16_384, 65_536])
def test_plans_come_back_from_words(length: int) -> None:
    method = method_for(length)
    plan = own_plan(method, PRECISIONS["3xfp16"], HOPPER, wide=length % 2 == 0)
    assert plan_in(plan_words(plan)) == plan
    assert plan_in(plan_words(None)) is None
