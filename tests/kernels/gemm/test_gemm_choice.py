"""Candidate plans of a product, and the choice among them without a tuned plan."""

from __future__ import annotations

from dataclasses import replace

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, Arch
from argand.gemm.candidates import candidates, with_packing
from argand.gemm.choice import GemmChoice
from argand.gemm.choice_workspace import partials_capacity
from argand.gemm.heuristics import choose
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.workspace import MAX_WORKSPACE, SLICES_WORKSPACE
from argand.runtime.plan import WGMMA_TARGET, PlanError, is_legal

from tests.kernels.compiled import refused
from tests.kernels.gemm.choices import HOPPER, LARGE, PACKED, SM_COUNT, A, B, candidates_of, wgmma
from tests.kernels.precisions import READ_IN_PLACE, SINGLE_HALF, TENSOR

OTHERS = [arch for arch in ARCHITECTURES if arch.target != WGMMA_TARGET]


@pytest.mark.parametrize("precision", TENSOR)
def test_every_candidate_is_legal_and_there_once(precision: str) -> None:
    """Candidates of results of 4 bytes are of wgmma, which alone stores them."""
    outputs = (None, "power", "half_output") if precision in SINGLE_HALF else (None, "power")
    for output in outputs:
        sizes = replace(LARGE, **{output: True}) if output else LARGE
        found = candidates_of(precision, sizes=sizes)
        assert len(set(found)) == len(found) > 0
        assert output is None or all(choice.wgmma is not None for choice in found)
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
    assert storages == {"planar", *(["fp32"] if precision in READ_IN_PLACE else [])}


@pytest.mark.parametrize("precision", TENSOR)
def test_a_packed_operand_may_have_either_role(precision: str) -> None:
    """As the row operand it is in planes, and the other one is packed."""
    for a, b, is_columns in ((A, PACKED, False), (PACKED, B, True)):
        found = candidates_of(precision, a, b)
        assert {choice.swapped for choice in found} == {False, True}
        assert all(choice.wgmma is not None for choice in found)
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
        Question(PRECISIONS[precision], GemmSizes(256, 64, 4096, 64), A, PACKED), HOPPER, SM_COUNT
    )
    assert choice.wgmma is not None
    assert (choice.swapped, choice.wgmma.storage) == (True, "planar")
    assert (choice.wgmma.block_m, choice.wgmma.block_n) == (128, 64)


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
    assert unpacked == {"planar", *(["fp32"] if precision in READ_IN_PLACE else [])}


def test_odd_batches_are_read_in_place_where_no_k_changes_places_or_packing_follows_it() -> None:
    """Along k they are read as they are; else Y is packed in the same order, each product's own."""
    odd = OperandTraits(copyable=False, odd_pitch=True, odd_batches=True)
    for k_major, beside, readable in (
        (True, replace(B, batched=False), True), (False, replace(B, batched=False), False),
        (False, B, True), (False, PACKED, False), (True, PACKED, True),
    ):  # fmt: skip
        assert replace(odd, k_major=k_major).readable(beside) == readable


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


def test_a_plan_for_other_pitches_can_run() -> None:
    """Lines of odd pitch take more shared memory, of which 128 x 160 has none left."""
    odd = replace(A, copyable=False, odd_pitch=True)
    row, found = PRECISIONS["tf32"], []
    for choice, _ in wgmma(candidates_of("tf32", A, B)):
        plan = with_packing(choice, row, odd, B).wgmma
        assert plan is not None
        assert is_legal(check_wgmma_plan, plan, row, HOPPER)
        found.append(plan)
    assert {plan.block_n for plan in found if plan.odd_pitch} > {48, 80, 128}


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
    assert all(choice.wgmma is not None and choice.wgmma.half_output for choice in found)
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
    assert candidates(Question(row, LARGE, A, B), arch, 108) == [GemmChoice()]
    assert choose(Question(row, LARGE, A, B), arch, 108) == GemmChoice()


@pytest.mark.parametrize("arch", OTHERS, ids=lambda arch: arch.target)
@pytest.mark.parametrize(
    ("a", "b", "half_output"), [(PACKED, B, False), (A, PACKED, False), (A, B, True)]
)
def test_where_nothing_fits_the_reason_is_said(
    arch: Arch, a: OperandTraits, b: OperandTraits, half_output: bool
) -> None:
    sizes = replace(LARGE, half_output=half_output)
    with pytest.raises(PlanError, match=r"no kernel for fp16 on .*packed operands, pairs of 16"):
        choose(Question(PRECISIONS["fp16"], sizes, a, b), arch, 108)


@pytest.mark.parametrize("sizes", [(1, 0, 5, 5), (1, 5, 0, 5), (1, 5, 5, 0)])
def test_an_empty_product_is_left_to_the_other_family(sizes: tuple[int, ...]) -> None:
    assert candidates_of("tf32", sizes=GemmSizes(*sizes)) == [GemmChoice()]


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(
    ("sizes", "most"),
    [
        ((1, 4096, 4096, 4096), 1),  # enough tiles
        ((1, 16, 16, 100_000), 256),  # 2 x 132 multiprocessors
        ((1, 16, 16, 191), 1),  # too short for two
        ((1, 16, 16, 1024), 8),
        ((300, 16, 16, 100_000), 1),  # each product a tile
        ((60, 16, 16, 100_000), 4),  # 2 x 132 multiprocessors
    ],
)
def test_k_is_cut_where_it_is_long_and_tiles_are_few(
    precision: str, sizes: tuple[int, ...], most: int
) -> None:
    if PRECISIONS[precision].terms > 1 and sizes[3] == 1024:
        most = 10  # whose slices are shorter
    found = wgmma(candidates_of(precision, sizes=GemmSizes(*sizes)))
    for choice, plan in found:
        count, num_k_tiles = choice.split_k_slices, -(-sizes[3] // plan.block_k)
        assert 1 <= count <= most
        assert (count - 1) * -(-num_k_tiles // count) < num_k_tiles  # no slice is empty
    slices = {choice.split_k_slices for choice, _ in found}
    assert 1 in slices
    assert max(slices) >= most / 2
    # As many as fill the card once are among them.
    tiles = sizes[0] if max(sizes[1:3]) == 16 else 1024
    fill = max(1, 132 // tiles)
    assert any(min(fill, most) * 0.9 <= count <= fill for count in slices)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("sizes", [(1, 16, 16, 1024), (1, 512, 512, 2048), (60, 100, 90, 5000)])
@pytest.mark.parametrize("traits", [(A, B), (A, PACKED), (PACKED, B), (PACKED, PACKED)], ids=str)
def test_slices_and_planes_are_at_most_twice_the_operands(
    precision: str, sizes: tuple[int, ...], traits: tuple[OperandTraits, OperandTraits]
) -> None:
    """Slices of a quarter are the exception, beside planes that fill all of that."""
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
        assert partials_capacity(
            choice, Question(row, GemmSizes(*sizes), *traits)
        ) == allowed - used + (
            8 * choice.split_k_slices * batch * m * n * (choice.split_k_slices > 1)
        )


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("tiles", [1, 14, 15, 16, 28, 29, 38, 39, 66, 67])
def test_clusters_share_the_k_of_tiles_that_leave_multiprocessors_idle(
    precision: str, tiles: int
) -> None:
    """Tiles have 64 rows. Clusters of 3 to 8 fill no whole GPC, so fewer run at once."""
    most = {2: 66, 3: 38, 4: 30, 5: 22, 6: 15, 8: 15}  # clusters, on an H200
    sizes = GemmSizes(tiles, 64, 64, 1600)
    found = [plan for _, plan in wgmma(candidates_of(precision, sizes=sizes)) if plan.cluster > 1]
    square = {plan.cluster for plan in found if plan.block_n == 64}
    assert square == {x for x in most if tiles <= most[x]}
    assert all(plan.stages >= 4 and plan.m_warpgroups == 1 for plan in found)


@pytest.mark.parametrize("precision", TENSOR)
def test_slices_of_a_cluster_are_not_short(precision: str) -> None:
    """Those of rows that are rounded to 16 bits in registers are twice as long."""
    rounds = PRECISIONS[precision].operand.bytes == 2 and PRECISIONS[precision].terms == 1
    for k, most in ((127, 1), (128, 2), (191, 2), (255, 3), (256, 4), (384, 6), (512, 8)):
        found = wgmma(candidates_of(precision, sizes=GemmSizes(1, 64, 96, k)))
        in_place = [plan.cluster for _, plan in found if plan.storage == "fp32"]
        planar = [plan.cluster for _, plan in found if plan.storage == "planar"]
        assert max(planar) <= most
        assert set(planar) >= {x for x in (2, 4) if x <= most}
        assert max(in_place, default=1) <= max(1, most // 2 if rounds else most)
