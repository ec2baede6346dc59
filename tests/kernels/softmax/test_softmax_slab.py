"""Slabs of a softmax: they compile without a GPU and without spills; which rows take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from argand import PRECISIONS
from argand.device import Arch
from argand.precision import HALF_FORMATS
from argand.runtime.plan import PlanError, is_legal
from argand.softmax.candidates import candidates, slab
from argand.softmax.formats import OPERATIONS, Operation
from argand.softmax.heuristics import choose_vector, plan_softmax
from argand.softmax.legality import check_row, check_softmax_plan
from argand.softmax.plan import SoftmaxForm, vector_for
from argand.softmax.source import kernel_name, softmax_source

from tests.kernels.compiled import ARCHS, Candidate, Kernels, assert_clean

HOPPER = ARCHS["sm_90a"]
PAIRS = [
    ("fp32", "fp32", "fp32"), ("fp32", "fp16", "fp16"), ("fp32", "bf16", "bf16"),
    ("fp32", "fp16", "fp32"), ("fp32", "bf16", "fp32"), ("fp32", "fp32", "bf16"),
    ("fp32", "complex64", "fp32"), ("fp64", "fp64", "fp64"), ("tf32", "fp32", "fp32"),
    ("3xtf32", "fp32", "fp32"), ("3xfp16", "fp32", "fp32"), ("bf16", "fp16", "fp16"),
]  # fmt: skip
COLUMNS = (1, 17, 55, 127, 493, 1001, 4901)


def form_of(
    operation: Operation, kind: str, output: str, columns: int, *, precision: str = "fp32",
    unit_scale: bool = True,
) -> SoftmaxForm:  # fmt: skip
    """The form of contiguous arrays that begin on a boundary of 16 bytes."""
    most = vector_for(kind, kind if operation == "logsumexp" else output)
    even = next(v for v in (16, 8, 4, 2, 1) if v <= most and columns % v == 0)
    vector = choose_vector(most, even, columns, operation)
    return SoftmaxForm(
        operation, kind, output, PRECISIONS[precision], vector, even % vector > 0, unit_scale, True
    )


def longest_slab(form: SoftmaxForm) -> int:
    """The longest of `COLUMNS` that are slabs."""
    if form.input == "fp32":
        return 1 if form.approximate else 55
    if form.input == "complex64":
        return 55
    return 127 if form.input in HALF_FORMATS else 1001


def slabs() -> Iterator[Candidate]:
    """The slabs that calls take, by either kind of copy."""
    for arch, operation, (precision, kind, output), columns, unit in product(
        ARCHS.values(), OPERATIONS, PAIRS, COLUMNS, (False, True)
    ):
        form = form_of(operation, kind, output, columns, precision=precision, unit_scale=unit)
        plan = plan_softmax(form, arch, rows=1 << 20, columns=columns, sm_count=132)
        assert plan.slab == (columns <= longest_slab(form))
        if not plan.slab:
            continue
        traits = (("threads", (plan.row_threads > 1) + (plan.row_threads >= 32)),)
        copied = replace(plan, bulk=False, slab_stages=3)
        for one in (plan, copied) if is_legal(check_softmax_plan, copied, form, arch) else (plan,):
            check_row(one, form, columns)
            yield Candidate(precision, arch, one, form, traits)


SLABS = Kernels(slabs)


@pytest.mark.slow
@pytest.mark.parametrize("precision", sorted({row[0] for row in PAIRS}))
def test_every_slab(arch: Arch, precision: str) -> None:
    for candidate in SLABS.of(precision, arch):
        form, plan = candidate.more, candidate.plan
        check_softmax_plan(plan, form, arch)
        assert_clean(softmax_source(form, plan), arch.target, kernel_name(form, plan))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "threads", "columns"), [("fp32", 2, 55), ("fp16", 64, 1001)])
def test_a_slab(arch: Arch, kind: str, threads: int, columns: int) -> None:
    form = form_of("softmax", kind, kind, columns)
    plan = slab(form, threads, columns, stages=2, bulk=arch.sm >= 90)
    check_softmax_plan(plan, form, arch)
    assert_clean(softmax_source(form, plan), arch.target, kernel_name(form, plan))


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_lanes_with_many_halves_do_not_spill(kind: str) -> None:
    """A lane holds them as fp32 for results in fp32."""
    form = form_of("softmax", kind, "fp32", 503)
    plan = slab(form, 16, 503, stages=2, bulk=True)
    check_softmax_plan(plan, form, HOPPER)
    assert_clean(softmax_source(form, plan), HOPPER.target, kernel_name(form, plan))


@pytest.mark.parametrize(
    ("kind", "output", "longest"),
    [
        ("fp32", "fp32", 56), ("fp16", "fp16", 256), ("bf16", "bf16", 256), ("fp16", "fp32", 128),
        ("complex64", "fp32", 64),
    ],
)  # fmt: skip
def test_widths_that_no_access_divides_take_slabs(kind: str, output: str, longest: int) -> None:
    """No width between takes another plan, so there is no cliff."""
    most = vector_for(kind, output)
    for columns in (*range(1, 600), *range(601, longest, 53)):
        if columns > longest:
            break
        form = form_of("softmax", kind, output, columns)
        plan = plan_softmax(form, HOPPER, rows=1 << 20, columns=columns, sm_count=132)
        # Lanes of few accesses store parts of sectors where results are wider than x.
        wider = kind != output == "fp32" and kind != "complex64" and columns > 16
        parts = (wider and columns % 8 != 0) or (kind == "fp32" and columns == 20)
        assert plan.slab == (columns % most != 0 or parts)
        if plan.slab:
            check_softmax_plan(plan, form, HOPPER)
            check_row(plan, form, columns)
            # A thread has at most one value beyond the row.
            assert (plan.values - 1) * plan.row_threads < columns


@pytest.mark.parametrize(
    ("kind", "output"),
    [("fp32", "fp32"), ("fp16", "fp16"), ("bf16", "fp32"), ("complex64", "fp32")],
)
def test_rows_fill_the_registers_that_they_take(kind: str, output: str) -> None:
    """They fill three quarters of them from 128 columns on, and 0.7 in `NARROW_HALVES`."""
    for columns in (*range(128, 1024, 8), *range(1025, 32768, 97)):
        form = form_of("softmax", kind, output, columns)
        plan = plan_softmax(form, HOPPER, rows=1 << 20, columns=columns, sm_count=132)
        if not plan.slab:
            least = 0.7 if output == "fp16" and columns <= 200 else 0.75
            assert columns >= least * plan.row_threads * plan.cluster * plan.values


@pytest.mark.parametrize(
    ("operation", "columns", "lanes"),
    [
        *(("softmax", *one) for one in ((33, 1), (36, 1), (71, 2), (84, 2), (235, 4))),
        *(("log_softmax", *one) for one in ((33, 1), (36, 1), (71, 2), (84, 2))),
    ],
)
@pytest.mark.parametrize("kind", HALF_FORMATS)
def test_lanes_of_wider_results_hold_up_to_64_values(
    operation: Operation, kind: str, columns: int, lanes: int
) -> None:
    """Half as many where rows are too few for the slabs of so few lanes."""
    form = form_of(operation, kind, "fp32", columns)
    fewest = 132 * 16 * 32 // lanes
    for rows, expected in ((1 << 22, lanes), (fewest, lanes), (fewest // 2, 2 * lanes)):
        plan = plan_softmax(form, HOPPER, rows=rows, columns=columns, sm_count=132)
        if columns % 4 or rows >= fewest:
            assert plan.slab
            assert plan.row_threads == expected
        else:
            assert not plan.slab


def test_rows_with_gaps_take_none() -> None:
    form = replace(form_of("softmax", "fp32", "fp32", 55), gapless=False)
    plan = plan_softmax(form, HOPPER, rows=1 << 20, columns=55, sm_count=132)
    assert not plan.slab
    with pytest.raises(PlanError, match="without gaps"):
        check_softmax_plan(slab(form, 2, 55, stages=2, bulk=True), form, HOPPER)
    assert not any(plan.slab for plan in candidates(form, HOPPER, 132, 55))


def test_few_rows_go_to_registers_at_once_by_more_threads() -> None:
    form = form_of("softmax", "fp32", "fp32", 55)
    many, few = (
        plan_softmax(form, HOPPER, rows=rows, columns=55, sm_count=132) for rows in (1 << 20, 8)
    )
    assert many.slab
    assert not few.slab
    assert few.row_threads == 32 > many.row_threads


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cluster": 2}, "a block or less"),
        ({"staged": True}, "a block or less"),
        ({"slab_stages": 9}, "2 to 4 stages"),
        ({"values": 0}, "a value a thread"),
        ({"values": 500, "blocks": 1}, "registers|more than a block has"),
    ],
)
def test_an_illegal_slab_says_why(change: dict[str, int], message: str) -> None:
    form = form_of("softmax", "fp32", "fp32", 55)
    plan = replace(slab(form, 2, 55, stages=2, bulk=True), **change)
    with pytest.raises(PlanError, match=message):
        check_softmax_plan(plan, form, HOPPER)


def test_bulk_copies_need_hopper() -> None:
    form = form_of("softmax", "fp32", "fp32", 55)
    with pytest.raises(PlanError, match="bulk copies need TMA"):
        check_softmax_plan(slab(form, 2, 55, stages=2, bulk=True), form, ARCHS["sm_80"])


def test_a_row_that_a_slab_does_not_fit_is_refused() -> None:
    form = form_of("softmax", "fp32", "fp32", 55)
    plan = slab(form, 2, 55, stages=2, bulk=True)
    for columns in (54, 57):
        with pytest.raises(PlanError, match="holds rows of 55 to 56 columns"):
            check_row(plan, form, columns)
