"""How many threads share a row of a softmax in registers. Needs no GPU."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, arch_for
from argand.multiprocessor import CLUSTER_SM, WARP
from argand.softmax.candidates import fitted
from argand.softmax.few_rows import are_few_rows
from argand.softmax.formats import ELEMENT_BYTES, Operation
from argand.softmax.heuristics import choose_vector, plan_softmax
from argand.softmax.plan import RowPlan, SoftmaxForm, vector_for
from argand.softmax.problem import SoftmaxProblem
from argand.softmax.resident import estimated_time, resident_candidate
from argand.softmax.source import kernel_name, softmax_source

from tests.kernels.compiled import assert_clean

HOPPER = arch_for(90)
EXACT = SoftmaxForm(
    "softmax", "fp32", "fp32", PRECISIONS["fp32"], 4, unaligned_rows=True, gapless=True
)
"""Exact exponentials of rows that begin anywhere."""
HALVES = SoftmaxForm(
    "softmax", "fp16", "fp16", PRECISIONS["fp32"], 8, unaligned_rows=True, gapless=True
)
MANY, FEW = 1 << 18, 16


def plan_of(form: SoftmaxForm, columns: int, rows: int = MANY) -> RowPlan:
    return plan_softmax(form, HOPPER, rows=rows, columns=columns, sm_count=132)


def full(plan: RowPlan, columns: int) -> float:
    """The part of the registers of a row's threads that it fills."""
    return columns / (plan.row_threads * plan.cluster * plan.values)


@pytest.mark.parametrize("form", [EXACT, replace(EXACT, operation="logsumexp"), HALVES])
def test_threads_fill_their_registers(form: SoftmaxForm) -> None:
    """The estimate chooses threads of rows that fill a GPU many times.

    At 2028 columns packed halves leave 0.208 of them empty.
    """
    for columns in range(513, 32_768, 101):
        plan = plan_of(form, columns)
        if plan.kind != "streamed":
            assert plan.kind == "resident"
            assert full(plan, columns) > 0.79


@pytest.mark.parametrize("kind", ["fp32", "fp16", "complex64"])
@pytest.mark.parametrize("rows", [1, 16, 132, 133, 900])
def test_few_rows_have_uncut_accesses_and_threads_for_latency(kind: str, rows: int) -> None:
    """Rows that a GPU holds at once: one block each, of threads that few values wait for."""
    size, most = ELEMENT_BYTES[kind], vector_for(kind, kind)
    for columns in (257, 400, 513, 761, 1200, 3000, 8191, 8192):
        few = are_few_rows(rows, columns, kind, kind, 132)
        even = math.gcd(most, columns)
        vector = choose_vector(most, even, columns, "softmax", few=few)
        if not few:
            assert rows * columns * size > 132 << 15
            continue
        assert vector == even
        form = replace(EXACT, input=kind, output=kind, vector=vector, unaligned_rows=False)
        plan = plan_of(form, columns, rows)
        assert (plan.kind, plan.cluster) == ("resident", 1)
        held, least = -(-rows // 132), max(6, 2 * vector)
        if plan.row_threads > WARP:
            assert columns > 512
            assert columns // plan.row_threads >= least
            assert held * plan.row_threads <= 1024
        else:
            assert columns <= 512 or columns < 64 * least or 64 * held > 1024


def test_rows_are_few_only_where_that_was_measured() -> None:
    """Shorter and longer rows, and more of them than registers hold, are not."""
    assert are_few_rows(1, 257, "fp32", "fp32", 132)
    assert not are_few_rows(1, 256, "fp32", "fp32", 132)
    assert not are_few_rows(1, 8193, "fp32", "fp32", 132)
    for kinds in (("fp32", "fp32"), ("fp16", "fp32"), ("fp32", "fp16")):
        assert are_few_rows(132 * 12, 1024, *kinds, 132)
        assert not are_few_rows(132 * 12 + 1, 1024, *kinds, 132)
    assert are_few_rows(132 * 24, 1024, "fp16", "fp16", 132)


def test_estimates_follow_the_hardware() -> None:
    """Empty registers, one block per multiprocessor, and clusters of as many warps cost time."""

    def time(threads: int, cluster: int, columns: int) -> float:
        return estimated_time(HALVES, fitted(HALVES, threads, cluster, columns), columns)

    assert time(256, 1, 2049) > 1.5 * time(96, 1, 2049)
    assert time(512, 1, 50257) > 1.02 * time(256, 2, 50257)
    assert time(256, 2, 33295) > 1.02 * time(512, 1, 33295)


@pytest.mark.parametrize("form", [EXACT, HALVES])
@pytest.mark.parametrize("columns", [631, 4097, 12_289])
def test_few_rows_have_more_threads(form: SoftmaxForm, columns: int) -> None:
    many, few = (plan_of(form, columns, rows) for rows in (MANY, FEW))
    assert few.row_threads * few.cluster > many.row_threads * many.cluster


@pytest.mark.parametrize("form", [EXACT, HALVES])
@pytest.mark.parametrize("columns", [300, 631, 4097, 12_289])
def test_a_row_for_each_multiprocessor_takes_no_more_threads_than_it_has_accesses(
    form: SoftmaxForm, columns: int
) -> None:
    """A plan may have one warp more: blocks of one row have at least two."""
    plan = plan_of(form, columns, 132)
    assert plan.cluster == 1
    assert (plan.row_threads - WARP) * form.vector < columns
    assert plan.row_threads >= plan_of(form, columns).row_threads


@pytest.mark.parametrize("edges", [False, True])
def test_few_long_rows_of_exact_exponentials_of_halves_are_clusters(edges: bool) -> None:
    form = replace(HALVES, output="fp32", vector=4, unaligned_rows=edges)
    columns, longest = (36_077, 92_159) if edges else (36_080, 92_160)
    few = 132 * (2 if edges else 1)
    for width in (columns, longest):
        assert plan_of(form, width, few).kind == "resident"
        assert plan_of(form, width, few + 1).kind == "ring"
        assert plan_of(replace(form, input="fp32"), width, few).kind == "ring"
    assert plan_of(form, longest + 4, few).kind == "ring"


@pytest.mark.parametrize(
    ("columns", "threads"), [(104_431, 480), (133_171, 512), (279_096, 576), (827_829, 576)]
)
def test_rings_of_exact_exponentials_of_halves_have_the_fewest_registers(
    columns: int, threads: int
) -> None:
    """Instructions bound them, also those of registers without a value."""
    exact = replace(HALVES, output="fp32", vector=4, unaligned_rows=True)
    plan = plan_of(exact, columns)
    assert plan.ring
    assert plan.row_threads == threads
    assert plan_of(replace(exact, output="fp16", vector=8), columns).row_threads == 512


def test_lanes_of_sums_are_fewer() -> None:
    """No rows are written, so instructions bound them."""
    form = replace(EXACT, vector=2, unaligned_rows=False)
    sums = replace(form, operation="logsumexp")
    for columns in (82, 122, 158):
        threads = [
            plan_of(one, columns).row_threads
            for one in (replace(form, operation="log_softmax"), sums)
        ]
        assert threads == [16, 8]


def test_an_estimate_of_any_arch_is_legal() -> None:
    """Blocks of one row take no clusters where there are none."""
    for arch in ARCHITECTURES:
        chosen = resident_candidate(HALVES, arch, MANY, 50_257, 132)
        assert chosen is None or chosen.plan(HALVES, arch, 50_257) is not None
        assert chosen is None or chosen.cluster == 1 or arch.sm >= CLUSTER_SM


@pytest.mark.parametrize(
    ("kind", "precision", "longest"),
    [
        ("fp32", "fp32", 24_576), ("fp32", "tf32", 24_576), ("fp16", "fp32", 32_768),
        ("complex64", "fp32", 12_288),
    ],
)  # fmt: skip
def test_many_long_rows_are_streamed_where_none_is_written(
    kind: str, precision: str, longest: int
) -> None:
    vector, row = vector_for(kind, kind), PRECISIONS[precision]
    form = SoftmaxForm("logsumexp", kind, "fp32", row, vector, False, gapless=True)
    held, read_once = plan_of(form, longest), plan_of(form, longest + vector)
    assert held.resident
    assert (read_once.kind, read_once.cluster) == ("streamed", 1)
    assert plan_of(form, longest + vector, rows=FEW).resident
    assert plan_of(replace(form, operation="softmax"), longest + vector).resident


@pytest.mark.parametrize(("kind", "words"), [("fp32", 32), ("fp16", 16), ("complex64", 0)])
def test_two_blocks_stream_a_row_where_they_load_unevenly(kind: str, words: int) -> None:
    """134 rows have two blocks for each of 132 multiprocessors and four more."""
    row, most = PRECISIONS["fp32"], vector_for(kind, kind)
    form = SoftmaxForm("logsumexp", kind, "fp32", row, most, unaligned_rows=True, gapless=True)
    uneven, fewer = (plan_of(form, 1_000_001, rows) for rows in (134, 132))
    assert fewer.kind == "ring"
    if words:
        held = uneven.values * form.value_bytes // 4
        assert (uneven.kind, uneven.cluster, held) == ("streamed", 2, words)
    else:
        assert uneven.kind == "ring"


@pytest.mark.parametrize(
    ("columns", "kind"), [(76, "resident"), (82, "slab"), (159, "slab"), (165, "resident")]
)
def test_short_sums_of_16_bits_have_four_lanes_but_near_edges(columns: int, kind: str) -> None:
    """Accesses of four values are whole, or the row is so long that few are cut."""
    vector = choose_vector(8, math.gcd(8, columns), columns, "logsumexp")
    form = replace(
        HALVES, operation="logsumexp", vector=vector, unaligned_rows=columns % vector > 0
    )
    plan = plan_of(form, columns)
    assert plan.kind == kind
    assert plan.row_threads == 4 or plan.slab
    assert plan_of(form, columns, FEW).row_threads > 4


def test_long_rows_of_fp32_have_a_block_each_where_there_are_many() -> None:
    for columns in (32_801, 40_000, 42_976):
        plan = plan_of(replace(EXACT, unaligned_rows=columns % 4 > 0), columns)
        assert (plan.kind, plan.row_threads, plan.cluster) == ("resident", 768, 1)
    assert plan_of(EXACT, 43_009).ring
    assert plan_of(replace(EXACT, precision=PRECISIONS["3xtf32"]), 42_000).ring


def test_many_packed_rows_have_blocks_of_their_own() -> None:
    aligned = replace(HALVES, unaligned_rows=False)
    assert plan_of(aligned, 1024).rows_a_block == 1
    held = [plan_of(form, 8192) for form in (aligned, replace(aligned, output="fp32", vector=4))]
    assert held[0].row_threads > 256
    assert all(plan.cluster == 1 for plan in held)


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("operation", ["softmax", "log_softmax"])
def test_no_block_of_a_complex_row_is_alone(operation: Operation, edges: bool) -> None:
    """Another one on its multiprocessor copies while it computes."""
    form = replace(EXACT, operation=operation, input="complex64", vector=2, unaligned_rows=edges)
    for columns in range(8_000, 32_768, 998):
        plan = plan_of(form, columns)
        assert plan.kind == "resident"
        assert plan.blocks > 1


@pytest.mark.slow
@pytest.mark.parametrize("columns", [8_000, 11_000, 14_000, 17_000, 21_000, 26_000, 30_000, 32_000])
def test_blocks_of_complex_rows_do_not_spill(columns: int) -> None:
    form = replace(EXACT, input="complex64", vector=2, unaligned_rows=False)
    plan = plan_of(form, columns)
    assert plan.values >= 22
    assert_clean(softmax_source(form, plan), HOPPER.target, kernel_name(form, plan))


@pytest.mark.parametrize(
    ("columns", "lanes"),
    [(20, 4), (28, 4), (36, 1), (60, 8), (76, 8), (80, 8), (100, 16), (132, 16), (204, 32)],
)
def test_lanes_of_rounded_halves_hold_two_accesses(columns: int, lanes: int) -> None:
    """Or, where these were mostly empty, three, and slabs hold short rows.

    Rows of 80 columns are whole sectors, and have others.
    """
    rounding = SoftmaxProblem((1, columns), "softmax", PRECISIONS["bf16"], "fp16", "fp32").rounding
    form = replace(HALVES, output="fp32", precision=rounding, vector=4, unaligned_rows=False)
    plan = plan_of(form, columns)
    assert plan.row_threads == lanes
    assert plan.slab == (columns == 36)


@pytest.mark.parametrize(("columns", "kind"), [(20_001, "resident"), (21_001, "ring")])
def test_many_unaligned_rows_of_widened_halves_are_rings(columns: int, kind: str) -> None:
    """Where registers of two blocks of a multiprocessor do not hold their exponentials."""
    form = replace(HALVES, output="fp32", vector=4)
    assert plan_of(form, columns).kind == kind
    assert plan_of(form, columns, 500).kind == "resident"
    assert plan_of(replace(form, unaligned_rows=False), columns - 1).kind == "resident"
