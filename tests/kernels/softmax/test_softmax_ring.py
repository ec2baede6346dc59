"""Rings of a softmax compile without a GPU and without spills, and what no ring may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from argand import PRECISIONS
from argand.device import Arch
from argand.multiprocessor import CLUSTER_SM
from argand.runtime.plan import PlanError
from argand.softmax.candidates import SoftmaxCandidate, candidates, fitted, ring
from argand.softmax.formats import OPERATIONS, Operation
from argand.softmax.heuristics import plan_softmax
from argand.softmax.legality import check_row, check_softmax_plan
from argand.softmax.plan import SoftmaxForm, vector_for
from argand.softmax.rings import with_lines
from argand.softmax.source import kernel_name, softmax_source

from tests.covers import covered
from tests.kernels.compiled import ARCHS, Candidate, Kernels, assert_clean

ARCH = ARCHS["sm_90a"]
RING_ARCHS = [arch for arch in ARCHS.values() if arch.sm >= CLUSTER_SM]
PAIRS = [
    ("fp32", "fp32", "fp32"), ("fp32", "fp16", "fp16"), ("fp32", "bf16", "bf16"),
    ("fp32", "fp16", "fp32"), ("fp32", "fp32", "bf16"), ("bf16", "fp32", "fp32"),
    ("fp16", "fp32", "fp32"), ("3xtf32", "fp32", "fp32"), ("fp32", "complex64", "fp32"),
]  # fmt: skip


def form_of(
    operation: Operation, kind: str, output: str, *, unaligned_rows: bool, precision: str = "fp32"
) -> SoftmaxForm:
    vector = vector_for(kind, kind if operation == "logsumexp" else output)
    return SoftmaxForm(
        operation,
        kind,
        output,
        PRECISIONS[precision],
        vector,
        unaligned_rows,
        unit_scale=unaligned_rows,
    )


def rings() -> Iterator[Candidate]:
    """With the most values per thread that each number of threads may have."""
    every = list(product(RING_ARCHS, OPERATIONS, PAIRS, (False, True), (1, 33)))
    for arch, operation, (precision, kind, output), edges, blocks in covered(
        every, lambda row: dict(enumerate(row))
    ):
        form = form_of(operation, kind, output, unaligned_rows=edges, precision=precision)
        plans = [
            plan
            for columns in (5_001, 9_000, 12_289, 16_000, 30_000, 50_000)
            for plan in candidates(form, arch, 132, columns * blocks)
            if plan.ring and plan.cluster == blocks
        ]
        assert plans or arch is not ARCH
        for plan in {p.row_threads: p for p in sorted(plans, key=lambda p: p.values)}.values():
            yield Candidate(precision, arch, plan, form)


RINGS = Kernels(rings)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("arch_row", RING_ARCHS, ids=lambda row: row.target)
def test_every_ring(arch_row: Arch, operation: Operation) -> None:
    chosen = [one for one in RINGS.on(arch_row) if one.more.operation == operation]
    assert chosen
    for form, plan in ((one.more, one.plan) for one in chosen):
        assert_clean(softmax_source(form, plan), arch_row.target, kernel_name(form, plan))


@pytest.mark.parametrize(("kind", "blocks"), [("fp32", 1), ("fp16", 33)])
def test_a_ring(kind: str, blocks: int) -> None:
    form = form_of("softmax", kind, kind, unaligned_rows=True)
    plan = ring(form, ARCH, SoftmaxCandidate(256, blocks, write_threads=128), 12_000 * blocks)
    check_softmax_plan(plan, form, ARCH)
    assert plan.slice_columns * blocks >= 12_000 * blocks + 127 // 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_threads": 512}, "divide those in number"),
        ({"staged": True}, "in place of cp.async"),
        ({"values": 96}, "registers of values"),
        ({"slice_columns": 40_960}, "columns that the reduce threads hold"),
        ({"slice_columns": 8_004}, "multiple of 32"),
        ({"epilogue_stages": 7}, "1 to 6 epilogue stages"),
        ({"epilogue_stages": 0}, "1 to 6 epilogue stages"),
        ({"load_stages": 1}, "2 to 8 load stages"),
        ({"load_stages": 9}, "2 to 8 load stages"),
        ({"load_stages": 8}, "more than a block has"),
        ({"blocks": 2}, "more than"),
    ],
)
def test_an_illegal_ring_says_why(change: dict[str, int], message: str) -> None:
    form = form_of("softmax", "fp32", "fp32", unaligned_rows=False)
    plan = ring(form, ARCH, SoftmaxCandidate(320, 2), 24_576, load_stages=3)
    check_softmax_plan(plan, form, ARCH)
    with pytest.raises(PlanError, match=message):
        check_softmax_plan(replace(plan, **change), form, ARCH)


@pytest.mark.parametrize(
    ("precision", "kind", "vector", "target", "message"),
    [
        ("fp32", "fp32", 4, "sm_80", "sm_90"),
        ("bf16", "fp16", 8, "sm_90a", "as they are"),
        ("fp64", "fp64", 2, "sm_90a", "as they are"),
        ("fp32", "fp32", 2, "sm_90a", "full accesses"),
    ],
)
def test_what_a_ring_does_not_take(
    precision: str, kind: str, vector: int, target: str, message: str
) -> None:
    form = SoftmaxForm(
        "softmax", kind, kind, PRECISIONS[precision], vector, unaligned_rows=vector == 2
    )
    plan = ring(form, ARCH, SoftmaxCandidate(320, 2), 24_576, load_stages=2)
    with pytest.raises(PlanError, match=message):
        check_softmax_plan(plan, form, ARCHS[target])


@pytest.mark.parametrize(("blocks", "staged"), [(1, False), (4, False), (4, True)])
@pytest.mark.parametrize("edges", [False, True])
def test_a_plan_holds_its_rows_and_has_no_more_accesses_than_they_need(
    blocks: int, staged: bool, edges: bool
) -> None:
    """The kernel looks for a row's end in the last two accesses only."""
    columns = 4099 if edges else 4096
    form = form_of("softmax", "fp32", "fp32", unaligned_rows=edges)
    plan = fitted(form, 64, blocks, columns, staged=staged)
    access, spare = 64 * blocks * 4, 31 * edges
    held = plan.values * 64 * blocks
    check_row(plan, form, columns)
    for most in (held - spare, held - 2 * access):
        check_row(plan, form, most)
    for other in (held - spare + 1, held - 2 * access - 1):
        with pytest.raises(PlanError, match=f"got {other}"):
            check_row(plan, form, other)


def test_a_ring_holds_its_rows() -> None:
    form = form_of("softmax", "fp16", "fp16", unaligned_rows=True)
    plan = ring(form, ARCH, SoftmaxCandidate(256, 3), 12_289)
    held = 3 * plan.slice_columns - 63
    check_row(plan, form, held)
    with pytest.raises(PlanError, match=f"got {held + 1}"):
        check_row(plan, form, held + 1)


@pytest.mark.parametrize(
    ("change", "columns", "even"),
    [
        ({}, 75_484, 32),  # slices begin on lines
        ({}, 32_000, 4),  # no ring
        ({"operation": "logsumexp"}, 75_484, 4),
        ({"input": "fp16"}, 75_484, 4),  # exact exponentials of 16 bits
        ({"vector": 1}, 75_484, 1),
        ({"input": "fp16", "output": "fp16", "vector": 8}, 81_912, 8),
    ],
)
def test_rows_keep_their_accesses(change: dict[str, Any], columns: int, even: int) -> None:
    form = replace(form_of("softmax", "fp32", "fp32", unaligned_rows=False), **change)
    assert with_lines(form, ARCH, rows=1000, columns=columns, even=even, sm_count=132) == form


def test_slices_of_rings_begin_on_lines() -> None:
    form = form_of("softmax", "fp32", "fp32", unaligned_rows=False)
    many = {"rows": 1000, "columns": 75_484, "even": 4, "sm_count": 132}
    assert with_lines(form, ARCH, **many).unaligned_rows
    assert with_lines(form, ARCH, **{**many, "rows": 131}) == form
    assert with_lines(form, ARCHS["sm_80"], **many) == form


@pytest.mark.parametrize(
    ("kind", "columns", "rows", "blocks"),
    [
        ("fp32", 65_536, 2048, 9),  # 126 of 132 multiprocessors; of 8, registers would be empty
        ("fp32", 65_536, 256, 6),  # all, for fewer rows
        ("fp32", 131_072, 1024, 18),
        ("fp32", 100_000, 200, 13),  # of 14, teams have too few rows
        ("fp32", 990_884, 135, 126),  # one team
        ("fp32", 444_989, 301, 44),  # 63 have much smaller slices
        ("fp32", 40_000, 900, 5),
        ("complex64", 131_072, 1024, 21),
    ],
)
def test_rings_have_room_for_rows_that_wait(
    kind: str, columns: int, rows: int, blocks: int
) -> None:
    form = form_of("softmax", kind, "fp32", unaligned_rows=False)
    plan = plan_softmax(form, ARCH, rows=rows, columns=columns, sm_count=132)
    assert plan.ring
    assert plan.cluster == blocks
    assert plan.load_stages >= 2
    assert plan.epilogue_stages >= 3
