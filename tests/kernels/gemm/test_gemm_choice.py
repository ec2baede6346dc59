"""Candidate plans of a product, and the choice among them without a tuned plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, Arch
from argand.gemm.candidates import (
    GemmChoice,
    GemmSizes,
    OperandTraits,
    candidates,
    partials_capacity,
)
from argand.gemm.heuristics import choose, estimate, relative_memory
from argand.gemm.memory import MAX_WORKSPACE, SLICES_WORKSPACE
from argand.gemm.sm90_plan import WgmmaPlan, check_wgmma_plan
from argand.runtime.plan import TARGET, PlanError

from tests.kernels.compiled import refused
from tests.kernels.precisions import SCALED, SINGLE_HALF, TENSOR

HOPPER = next(arch for arch in ARCHITECTURES if arch.target == TARGET)
OTHERS = [arch for arch in ARCHITECTURES if arch.target != TARGET]
SM_COUNT = 132  # of an H200
LARGE = GemmSizes(1, 4096, 4096, 4096)
A, B = OperandTraits(k_major=True), OperandTraits(k_major=False)
"""Row-major operands."""
PACKED = OperandTraits(packed=True)


def candidates_of(
    precision: str, a: OperandTraits = A, b: OperandTraits = B, sizes: GemmSizes = LARGE
) -> list[GemmChoice]:
    return candidates(PRECISIONS[precision], HOPPER, sizes, a, b)


def wgmma(found: list[GemmChoice]) -> list[tuple[GemmChoice, WgmmaPlan]]:
    return [(choice, choice.plan) for choice in found if choice.plan is not None]


def chosen(precision: str, *sizes: int, **traits: Any) -> GemmChoice:
    a, b = replace(A, **traits), replace(B, **traits)
    return choose(PRECISIONS[precision], HOPPER, SM_COUNT, GemmSizes(*sizes), a, b)


@pytest.mark.parametrize("precision", TENSOR)
def test_every_candidate_is_legal_and_there_once(precision: str) -> None:
    for half_output in (False, True) if precision in SINGLE_HALF else (False,):
        found = candidates_of(precision, sizes=replace(LARGE, half_output=half_output))
        assert len(set(found)) == len(found)
        for _, plan in wgmma(found):
            check_wgmma_plan(plan, PRECISIONS[precision], HOPPER)


@pytest.mark.parametrize("precision", TENSOR)
def test_either_operand_may_be_the_row_operand(precision: str) -> None:
    """Interleaved it is read along its own fast axis; planes are always along k."""
    for choice, plan in wgmma(candidates_of(precision)):
        rows = B if choice.swapped else A
        assert plan.k_major == (plan.storage != "planar" and rows.k_major)
    assert {choice.swapped for choice, _ in wgmma(candidates_of(precision))} == {False, True}
    storages = {plan.storage for _, plan in wgmma(candidates_of(precision))}
    assert storages == ({"planar"} if precision in SCALED else {"fp32", "planar"})


@pytest.mark.parametrize("precision", TENSOR)
def test_a_packed_operand_may_have_either_role(precision: str) -> None:
    """As the row operand it is in planes, and the other one is packed."""
    for a, b, is_columns in ((A, PACKED, False), (PACKED, B, True)):
        found = candidates_of(precision, a, b)
        assert {choice.swapped for choice in found} == {False, True}
        assert all(choice.plan is not None for choice in found)
        for choice, plan in wgmma(found):
            assert plan.storage == "planar" or choice.swapped == is_columns
            # The kernel packs the other one where planes need nothing that comes before it.
            assert not plan.fused_pack or (
                precision == "tf32" and choice.swapped and not is_columns
            )


@pytest.mark.parametrize("precision", TENSOR)
def test_a_long_packed_operand_is_the_row_operand(precision: str) -> None:
    """Samples packed before, by 64 x 64 weights that are not: tiles are 128 of the samples."""
    choice = choose(
        PRECISIONS[precision], HOPPER, SM_COUNT, GemmSizes(256, 64, 4096, 64), A, PACKED
    )
    assert choice.plan is not None
    assert (choice.swapped, choice.plan.storage) == (True, "planar")
    assert (choice.plan.block_m, choice.plan.block_n) == (128, 64)


@pytest.mark.parametrize("precision", TENSOR)
def test_two_packed_operands_are_both_read_from_planes(precision: str) -> None:
    found = candidates_of(precision, PACKED, PACKED)
    assert {plan.storage for _, plan in wgmma(found)} == {"planar"}
    assert {choice.swapped for choice in found} == {False, True}


@pytest.mark.parametrize("precision", TENSOR)
def test_what_tma_cannot_read_is_packed(precision: str) -> None:
    crooked = replace(A, copyable=False)
    for choice, plan in wgmma(candidates_of(precision, crooked, B)):
        if not choice.swapped:
            assert plan.storage == "planar"
    assert {plan.storage for _, plan in wgmma(candidates_of(precision, crooked, crooked))} == {
        "planar"
    }


@pytest.mark.parametrize("precision", TENSOR)
def test_a_conjugate_needs_the_other_operand_unpacked_or_is_packed(precision: str) -> None:
    """conj(X) Y is conj(X conj(Y)): planes of Y that exist already cannot be conjugated."""
    turned = replace(A, conjugated=True)
    assert {plan.storage for _, plan in wgmma(candidates_of(precision, turned, PACKED))} == {
        "planar"
    }
    unpacked = {
        plan.storage for c, plan in wgmma(candidates_of(precision, turned, B)) if not c.swapped
    }
    assert unpacked == ({"planar"} if precision in SCALED else {"fp32", "planar"})


@pytest.mark.parametrize("precision", TENSOR)
def test_where_fused_packing_is_a_candidate(precision: str) -> None:
    """One term of tf32, k contiguous, beside a row operand in place or packed beforehand."""
    row = PRECISIONS[precision]
    possible = row.terms == 1 and row.operand.name == "tf32"
    for a, b in ((A, B), (A, A), (B, B), (A, PACKED), (A, replace(A, copyable=False))):
        fused = {
            choice.swapped
            for choice, plan in wgmma(candidates_of(precision, a, b))
            if plan.fused_pack
        }
        columns = {False: b, True: a}
        expected = {
            swapped
            for swapped, x in columns.items()
            if possible and x.k_major and x.copyable and not x.packed
            and (columns[not swapped].copyable or columns[not swapped].packed)
        }  # fmt: skip
        assert fused == expected


@pytest.mark.parametrize("precision", SINGLE_HALF)
def test_pairs_of_16_bits_are_read_as_they_are(precision: str) -> None:
    half = replace(A, half=True), replace(B, half=True)
    found = wgmma(candidates_of(precision, *half))
    assert {plan.storage for _, plan in found} == {"half", "planar"}
    assert all(plan.prescaled == PRECISIONS[precision].scaled for _, plan in found)
    assert not any(plan.prescaled for _, plan in wgmma(candidates_of(precision)))
    assert GemmChoice() not in candidates_of(precision, *half)  # it would have to widen them


@pytest.mark.parametrize("precision", SINGLE_HALF)
def test_16_bit_results_come_from_this_family_and_whole(precision: str) -> None:
    """They are rounded once, so split-K slices, which are reduced in fp32, are none."""
    found = candidates_of(precision, sizes=GemmSizes(1, 16, 16, 100_000, half_output=True))
    assert found
    assert all(choice.plan is not None and choice.plan.half_output for choice in found)
    assert {choice.split_k_slices for choice in found} == {1}


@pytest.mark.parametrize("precision", [name for name in TENSOR if name not in SINGLE_HALF])
def test_other_precisions_have_no_16_bit_results(precision: str) -> None:
    operand = PRECISIONS[precision].operand
    found = candidates_of(precision, sizes=replace(LARGE, half_output=True))
    if operand.bytes == 4:
        assert found == []
    assert GemmChoice() not in found


@pytest.mark.pairwise
@pytest.mark.parametrize("arch", OTHERS, ids=lambda arch: arch.target)
@pytest.mark.parametrize("precision", TENSOR)
def test_other_architectures_have_only_the_other_family(arch: Arch, precision: str) -> None:
    if refused(precision, arch):
        return
    row = PRECISIONS[precision]
    assert candidates(row, arch, LARGE, A, B) == [GemmChoice()]
    assert choose(row, arch, 108, LARGE, A, B) == GemmChoice()


@pytest.mark.parametrize("arch", OTHERS, ids=lambda arch: arch.target)
@pytest.mark.parametrize(
    ("a", "b", "half_output"), [(PACKED, B, False), (A, PACKED, False), (A, B, True)]
)
def test_where_nothing_fits_the_reason_is_said(
    arch: Arch, a: OperandTraits, b: OperandTraits, half_output: bool
) -> None:
    sizes = replace(LARGE, half_output=half_output)
    with pytest.raises(PlanError, match=r"no kernel for fp16 on .*packed operands, pairs of 16"):
        choose(PRECISIONS["fp16"], arch, 108, sizes, a, b)


@pytest.mark.parametrize("sizes", [(1, 0, 5, 5), (1, 5, 0, 5), (1, 5, 5, 0)])
def test_an_empty_product_is_left_to_the_other_family(sizes: tuple[int, ...]) -> None:
    assert candidates_of("tf32", sizes=GemmSizes(*sizes)) == [GemmChoice()]


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(
    ("sizes", "most"),
    [
        ((1, 4096, 4096, 4096), 1),  # enough tiles
        ((1, 16, 16, 100_000), 128),  # 100000 / 128 is the last above 512
        ((1, 16, 16, 1023), 1),  # too short for two
        ((1, 16, 16, 1024), 2),
        ((300, 16, 16, 100_000), 1),  # each product a tile
        ((60, 16, 16, 100_000), 4),  # 2 x 132 multiprocessors
    ],
)
def test_k_is_cut_where_it_is_long_and_tiles_are_few(
    precision: str, sizes: tuple[int, ...], most: int
) -> None:
    found = wgmma(candidates_of(precision, sizes=GemmSizes(*sizes)))
    slices = {choice.split_k_slices for choice, _ in found}
    assert slices == {2**i for i in range(most.bit_length())}
    for choice, plan in found:
        tiles = sizes[0] * -(-sizes[1] // plan.block_m) * -(-sizes[2] // plan.block_n)
        assert choice.split_k_slices == 1 or choice.split_k_slices * tiles <= 2 * SM_COUNT


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("sizes", [(1, 16, 16, 1024), (1, 512, 512, 2048), (60, 100, 90, 5000)])
@pytest.mark.parametrize("traits", [(A, B), (A, PACKED), (PACKED, B), (PACKED, PACKED)], ids=str)
def test_slices_and_planes_are_at_most_twice_the_operands(
    precision: str, sizes: tuple[int, ...], traits: tuple[OperandTraits, OperandTraits]
) -> None:
    """But for slices of a quarter beside planes that fill all of that."""
    batch, m, n, k = sizes
    row = PRECISIONS[precision]
    planes = 2 * row.terms * row.operand.bytes
    for choice, plan in wgmma(candidates_of(precision, *traits, GemmSizes(*sizes))):
        allowed = used = 0
        for lines, x, is_rows in (
            (m, traits[0], not choice.swapped),
            (n, traits[1], choice.swapped),
        ):
            numbers = batch * lines * -(-k // 16) * 16
            allowed += 2 * numbers * (planes if x.packed else 8)
            used += numbers * planes * (not x.packed and (not is_rows or plan.storage == "planar"))
        slices = 8 * choice.split_k_slices * batch * m * n * (choice.split_k_slices > 1)
        assert used <= allowed
        assert used + slices <= allowed or slices <= SLICES_WORKSPACE * allowed / MAX_WORKSPACE
        used += slices
        assert partials_capacity(choice, row, GemmSizes(*sizes), *traits) == allowed - used + (
            8 * choice.split_k_slices * batch * m * n * (choice.split_k_slices > 1)
        )


def test_few_tiles_of_a_long_k_are_cut_beside_planes_of_two_terms() -> None:
    """Operands that TMA cannot read in place, so planes take twice their bytes."""
    odd = {"copyable": False}
    choice = chosen("3xtf32", 1, 1194, 121, 6997, **odd)
    assert choice.plan is not None
    assert choice.plan.storage == "planar"
    assert choice.split_k_slices > 1


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("size", [4096, 8192])
def test_large_products_take_the_largest_tile(precision: str, size: int) -> None:
    choice = chosen(precision, 1, size, size, size)
    assert choice.plan is not None
    assert (choice.plan.block_m, choice.plan.block_n, choice.split_k_slices) == (128, 128, 1)


@pytest.mark.parametrize("precision", TENSOR)
def test_one_tile_of_long_k_is_cut(precision: str) -> None:
    choice = chosen(precision, 1, 16, 16, 100_000)
    assert choice.plan is not None
    assert choice.split_k_slices >= 32
    assert "split-K slices" in choice.name


@pytest.mark.parametrize("precision", TENSOR)
def test_small_products_are_not_packed(precision: str) -> None:
    assert replace(chosen(precision, 1, 128, 128, 128), unscaled=False) == GemmChoice()


@pytest.mark.parametrize("precision", [name for name in TENSOR if name not in SCALED])
def test_the_long_operand_of_a_batch_stays_where_it_is(precision: str) -> None:
    """Weights by samples: the 64 x 64 weights are packed, the 64 x 4096 samples are not."""
    choice = chosen(precision, 256, 64, 4096, 64)
    assert choice.swapped
    assert choice.plan is not None
    assert (choice.plan.storage, choice.plan.k_major) == ("fp32", False)


def test_the_least_estimate_is_chosen() -> None:
    row = PRECISIONS["tf32"]
    times = {c: estimate(c, row, SM_COUNT, LARGE, A, B) for c in candidates_of("tf32")}
    assert chosen("tf32", 1, 4096, 4096, 4096) == min(times, key=lambda c: times[c])
    assert all(time > 0 for time in times.values())


@pytest.mark.parametrize("precision", TENSOR)
def test_every_candidate_has_an_estimate_that_grows(precision: str) -> None:
    row = PRECISIONS[precision]
    larger = GemmSizes(1, 8192, 8192, 8192)
    for a, b in ((A, B), (A, PACKED), (PACKED, B), (PACKED, PACKED)):
        for choice in candidates_of(precision, a, b):
            small = estimate(choice, row, SM_COUNT, LARGE, a, b)
            # Eight times the products at the same rate, up to packing and the last wave.
            assert 5 < estimate(choice, row, SM_COUNT, larger, a, b) / small < 9


def test_slower_memory_delays_what_it_bounds() -> None:
    """The traffic of a product of short k, and packing; products of long k only their share."""
    row, slow = PRECISIONS["tf32"], relative_memory(3.352e12)  # an H100's
    assert 0.65 < slow < 0.7
    assert relative_memory(0.0) == 1.0
    for k, least, most in ((16, 1.2, 1 / slow), (8192, 1.0, 1.1)):
        sizes = GemmSizes(1, 16384, 2048, k)
        for choice, _ in wgmma(candidates_of("tf32", A, B, sizes)):
            times = [estimate(choice, row, SM_COUNT, sizes, A, B, rate) for rate in (1.0, slow)]
            assert least < times[1] / times[0] < most


@pytest.mark.parametrize("precision", TENSOR)
def test_what_is_packed_beforehand_costs_less(precision: str) -> None:
    row = PRECISIONS[precision]
    for choice, _ in wgmma(candidates_of(precision, A, PACKED)):
        packed = estimate(choice, row, SM_COUNT, LARGE, A, PACKED)
        assert packed < estimate(choice, row, SM_COUNT, LARGE, A, B)


def test_names_say_what_is_done() -> None:
    plan = WgmmaPlan(1, 32, 32, 6)
    assert GemmChoice().name == "mma.sync"
    assert GemmChoice(plan).name == "wgmma 64x32x32 6 stages fp32, A B"
    swapped = GemmChoice(replace(plan, storage="planar"), swapped=True, split_k_slices=4)
    assert swapped.name == "wgmma 64x32x32 6 stages planar, B^T A^T, 4 split-K slices"
