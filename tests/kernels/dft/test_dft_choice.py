"""Plans of transforms without a GPU: tables as lanes read them, legality, the choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, Arch, arch_for
from argand.dft.butterfly import ButterflyPlan
from argand.dft.butterfly_heuristics import group_counts
from argand.dft.candidates import (
    best_legal,
    candidates,
    fullest_legal,
    is_held,
    kinds_of,
    ordered,
    plan_order,
)
from argand.dft.cluster import ClusterPlan
from argand.dft.fragments import fragments, fused_twiddles
from argand.dft.hankel import HankelPlan
from argand.dft.heuristics import choose, own_plan
from argand.dft.legality import wide_fits
from argand.dft.library_choice import FAST_PRIME
from argand.dft.method import method_for, prime_factors
from argand.dft.plan import DensePlan, TwoFactorPlan, folded_bytes, padded
from argand.dft.plan_words import plan_in, plan_words
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.tables import folded_matrices, twiddles
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.truncation import truncation_bias
from argand.dft.two_factor_heuristics import two_factor_time
from argand.dft.two_pass import TwoPassPlan
from argand.multiprocessor import registers

from tests.covers import EXHAUSTIVE, examples
from tests.kernels.compiled import ARCHS
from tests.kernels.precisions import TENSOR

HOPPER = arch_for(90)


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


@pytest.mark.parametrize("precision", TENSOR)
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


def test_registers_are_dealt_out_by_fours_of_warps() -> None:
    assert [registers(32 * warps) for warps in (1, 8, 9, 12, 13, 16, 17)] == [
        255, 255, 168, 168, 128, 128, 96,
    ]  # fmt: skip


@pytest.mark.parametrize("precision", TENSOR)
def test_every_length_runs_or_says_why(precision: str) -> None:
    """In the short run every sixth length at one precision, each precision at some of them."""
    row = PRECISIONS[precision]
    lengths = (*range(1, 600), 1009, 2039, 4093, 8191, 10_007, 65_537, 1 << 20)
    some = lengths[TENSOR.index(precision) * 6 :: 6 * len(TENSOR)]
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
        773: ButterflyPlan, 1009: ButterflyPlan, 2039: ButterflyPlan,
        4093: ButterflyPlan, 8191: ButterflyPlan, 10_007: ButterflyPlan, 16_384: SingleCtaPlan,
        32_768: ClusterPlan, 131_072: ClusterPlan,
    }  # fmt: skip
    for length, kind in kinds.items():
        method = method_for(length)
        wide = wide_fits(method.kind, length, length)
        assert isinstance(choose(method, row, HOPPER, wide=wide).plan, kind), length
    for length in (64, 100, 128, 1000, 1024, 4096):
        assert "cufft: faster" in str(choose(method_for(length), row, HOPPER, wide=True))
    for length in (8192, 1 << 22):
        assert "cufft: no kernel of ours" in str(choose(method_for(length), row, HOPPER, wide=True))
    for length in (1 << 18, 1 << 20):
        assert "cufft: faster" in str(choose(method_for(length), row, HOPPER, wide=True))
    for length in (100_000, 214_200, 15 << 16):
        assert isinstance(choose(method_for(length), row, HOPPER, wide=True).plan, TwoPassPlan)
    ampere = arch_for(80)
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


def test_candidates_of_the_shortest_lengths() -> None:
    """One number has no plan and no prime factor."""
    for length in (1, 2, 3):
        found = candidates(method_for(length), PRECISIONS["3xfp16"], HOPPER, wide=True)
        assert bool(found) == (length > 1)


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


def test_a_prime_of_one_term_is_dense_or_a_convolution() -> None:
    for length, kind in ((419, DensePlan), (433, ButterflyPlan), (509, ButterflyPlan)):
        plan = own_plan(method_for(length), PRECISIONS["tf32"], HOPPER, wide=False)
        assert isinstance(plan, kind)


def test_short_dense_rows_come_by_two_tiles() -> None:
    for length, tiles in ((13, 1), (15, 2), (24, 1), (35, 2), (42, 1)):
        plan = own_plan(method_for(length), PRECISIONS["tf32"], HOPPER, wide=False)
        assert isinstance(plan, DensePlan)
        assert plan.m_tiles == tiles


def test_two_factors_are_ranked_by_warps_that_compute() -> None:
    """Eight warps hold 128 transforms where a stage has 41, and are 1.2 times as slow as three."""
    plan = own_plan(method_for(4797), PRECISIONS["fp16"], HOPPER, wide=False)
    assert isinstance(plan, TwoFactorPlan)
    assert (plan.warps, plan.groups, plan.buffers) == (3, 2, 2)


@pytest.mark.parametrize(
    ("length", "precision", "pair"),
    [(1428, "3xfp16", (51, 28)), (1700, "3xfp16", (68, 25)), (5544, "3xfp16", (88, 63)),
     (4700, "tf32", (100, 47)), (2220, "tf32", (60, 37)), (1924, "tf32", (52, 37))],
)  # fmt: skip
def test_two_factors_are_the_pair_of_least_time(
    length: int, precision: str, pair: tuple[int, int]
) -> None:
    """Full tiles, lines without gaps: on an H200 another pair takes 1.27 to 1.9 times as long."""
    plan = own_plan(method_for(length), PRECISIONS[precision], HOPPER, wide=True)
    assert isinstance(plan, TwoFactorPlan)
    assert (plan.n1, plan.n2) == pair


@pytest.mark.parametrize(
    ("length", "precision", "measured"),
    [(1333, "3xfp16", 2.26), (1358, "tf32", 1.82), (2134, "tf32", 1.95), (3268, "tf32", 1.18),
     (5590, "3xfp16", 3.11), (6320, "tf32", 1.6), (8118, "tf32", 2.46)],
)  # fmt: skip
def test_times_of_two_factors(length: int, precision: str, measured: float) -> None:
    """Over a copy of the numbers, on an H200: three standard deviations of lengths not fitted."""
    row, method = PRECISIONS[precision], method_for(length)
    plan = own_plan(method, row, HOPPER, wide=wide_fits(method.kind, length, length))
    assert isinstance(plan, TwoFactorPlan)
    assert two_factor_time(plan, row) == pytest.approx(measured, rel=0.2)


@pytest.mark.parametrize(
    ("length", "radices"), [(21_501, (12, 8, 8)), (82_277, (12, 8, 8)), (351_903, (12, 16, 16))]
)
def test_radices_are_in_the_order_of_the_fewest_bank_conflicts(
    length: int, radices: tuple[int, ...]
) -> None:
    """On an H200 8 x 12 x 8 takes 1.03 to 1.07 times as long, 12 x 12 x 10 1.03."""
    plan = own_plan(method_for(length), PRECISIONS["3xfp16"], HOPPER, wide=False)
    assert isinstance(plan, ThreeKernelPlan)
    assert plan.radices == radices


@pytest.mark.parametrize("length", [7, 131, 255, 1024, 1009, 14_009, 16_384, 65_536])
def test_plans_come_back_from_words(length: int) -> None:
    method = method_for(length)
    plan = own_plan(method, PRECISIONS["3xfp16"], HOPPER, wide=length % 2 == 0)
    assert plan_in(plan_words(plan)) == plan
    assert plan_in(plan_words(None)) is None


@pytest.mark.parametrize(
    ("length", "warps", "groups"), [(134, 1, 16), (215, 2, 14), (524, 1, 16), (1835, 8, 4)]
)
def test_schedulers_have_as_many_warps_of_butterflies(length: int, warps: int, groups: int) -> None:
    """14 groups of two warps are the most that named barriers and registers allow."""
    plan = own_plan(method_for(length), PRECISIONS["3xfp16"], HOPPER, wide=False)
    assert isinstance(plan, ButterflyPlan)
    assert (plan.warps, plan.groups) == (warps, groups)
    assert [group_counts(3, most)[0] for most in (1, 8, 10)] == [1, 8, 8]


@pytest.mark.parametrize("precision", ["3xfp16", "tf32"])
@pytest.mark.parametrize("length", [24, 67, 127, 251, 521, 1009, 1155, 3072, 4093, 8190, 14_009])
def test_the_best_plan_is_found_among_few(length: int, precision: str) -> None:
    """It is that of all legal plans, because none of fewer groups is estimated to be better."""
    row, method = PRECISIONS[precision], method_for(length)
    for plans in map(list, kinds_of(method, row, length % 2 == 0)):
        for plan in plans[::7]:
            if not isinstance(plan, HankelPlan) and getattr(plan, "groups", 1) > 1:
                fewer = replace(plan, groups=plan.groups - 1)
                assert plan_order(fewer, row) >= plan_order(plan, row)
        for arch in ARCHITECTURES:
            legal = [found for plan in plans if (found := fullest_legal(plan, row, arch))]
            every = [*filter(is_held, legal)]
            best = best_legal(plans, row, arch, is_held)
            assert best == (ordered(every, row)[0] if every else None)
