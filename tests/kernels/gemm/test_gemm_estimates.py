"""Estimated times of candidate plans, and what they choose."""

from __future__ import annotations

from dataclasses import replace

import pytest
from argand import PRECISIONS, Device
from argand.gemm.choice import GemmChoice
from argand.gemm.heuristics import estimate
from argand.gemm.question import GemmSizes, Question
from argand.gemm.sm90.plan import WgmmaPlan

from tests.kernels.gemm.choices import LARGE, PACKED, SM_COUNT, A, B, candidates_of, chosen, wgmma
from tests.kernels.precisions import SCALED, TENSOR


def test_few_tiles_of_a_long_k_are_cut_beside_planes_of_two_terms() -> None:
    """Operands that TMA cannot read in place, so planes take twice their bytes."""
    odd = {"copyable": False}
    choice = chosen("3xtf32", 1, 1194, 121, 6997, **odd)
    assert choice.wgmma is not None
    assert choice.wgmma.storage == "planar"
    assert choice.split_k_slices > 1


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("size", [4096, 8192])
def test_large_products_take_the_largest_tile(precision: str, size: int) -> None:
    choice = chosen(precision, 1, size, size, size)
    assert choice.wgmma is not None
    assert (choice.wgmma.block_m, choice.wgmma.block_n, choice.split_k_slices) == (128, 128, 1)


@pytest.mark.parametrize("precision", TENSOR)
def test_small_products_are_not_packed(precision: str) -> None:
    assert chosen(precision, 1, 128, 128, 128).family == "mma.sync"


@pytest.mark.parametrize("precision", [name for name in TENSOR if name not in SCALED])
def test_the_long_operand_of_a_batch_stays_where_it_is(precision: str) -> None:
    """Weights by samples: the 64 x 64 weights are packed, the 64 x 4096 samples are not."""
    choice = chosen(precision, 256, 64, 4096, 64)
    assert choice.swapped
    assert choice.wgmma is not None
    assert (choice.wgmma.storage, choice.wgmma.k_major) == ("fp32", False)


def test_stages_are_as_deep_as_a_ping_pong_has_them() -> None:
    """In planes at 3xfp16 those of 32 k in place of 48: a k of 51 takes 64, not 96 (an H200)."""
    choice = chosen("3xfp16", 11, 1870, 10094, 51)
    assert choice.wgmma is not None
    assert (choice.wgmma.storage, choice.wgmma.block_n) == ("planar", 112)


def test_the_least_estimate_is_chosen() -> None:
    row = PRECISIONS["tf32"]
    times = {c: estimate(c, Question(row, LARGE, A, B), SM_COUNT) for c in candidates_of("tf32")}
    assert chosen("tf32", 1, 4096, 4096, 4096) == min(times, key=lambda c: times[c])
    assert all(time > 0 for time in times.values())


@pytest.mark.parametrize("precision", TENSOR)
def test_every_candidate_has_an_estimate_that_grows(precision: str) -> None:
    row = PRECISIONS[precision]
    larger = GemmSizes(1, 8192, 8192, 8192)
    for a, b in ((A, B), (A, PACKED), (PACKED, B), (PACKED, PACKED)):
        for choice in candidates_of(precision, a, b):
            small = estimate(choice, Question(row, LARGE, a, b), SM_COUNT)
            # Eight times the products at the same rate, up to packing and the last wave.
            assert 5 < estimate(choice, Question(row, larger, a, b), SM_COUNT) / small < 9


def test_slower_memory_delays_what_it_bounds() -> None:
    """The traffic of a product of short k, and packing; products of long k only their share."""
    row, slow = PRECISIONS["tf32"], Device("cuda", "H100", memory_rate=3.352e12).relative_memory
    assert 0.65 < slow < 0.7
    assert Device("cuda", "of an unknown rate").relative_memory == 1.0
    for k, least, most in ((16, 1.15, 1 / slow), (8192, 1.0, 1.1)):
        sizes = GemmSizes(1, 16384, 2048, k)
        for choice, plan in wgmma(candidates_of("tf32", A, B, sizes)):
            # Stores of one warpgroup, or of few columns, take longer than their traffic.
            smallest = plan.m_warpgroups == 1 or plan.block_n < 64
            times = [
                estimate(choice, Question(row, sizes, A, B), SM_COUNT, rate) for rate in (1.0, slow)
            ]
            assert (1.0 if smallest else least) < times[1] / times[0] < most


@pytest.mark.parametrize("precision", TENSOR)
def test_what_is_packed_beforehand_costs_less(precision: str) -> None:
    row = PRECISIONS[precision]
    for choice, _ in wgmma(candidates_of(precision, A, PACKED)):
        packed = estimate(choice, Question(row, LARGE, A, PACKED), SM_COUNT)
        assert packed < estimate(choice, Question(row, LARGE, A, B), SM_COUNT)


def test_names_say_what_is_done() -> None:
    plan = WgmmaPlan(1, 32, 32, 6)
    assert GemmChoice().name == "mma.sync"
    assert GemmChoice(plan).name == "wgmma 64x32x32 6 stages fp32, A B"
    swapped = GemmChoice(replace(plan, storage="planar"), swapped=True, split_k_slices=4)
    assert swapped.name == "wgmma 64x32x32 6 stages planar, B^T A^T, 4 split-K slices"
