"""How many threads share a row of a softmax in registers. Needs no GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES
from argand.softmax.heuristics import plan_softmax
from argand.softmax.plan import WARP, RowPlan, SoftmaxForm, vector_for

HOPPER = next(arch for arch in ARCHITECTURES if arch.target == "sm_90a")
EXACT = SoftmaxForm("softmax", "fp32", "fp32", PRECISIONS["fp32"], 4, edges=True, gapless=True)
"""Exact exponentials of rows that begin anywhere."""
MANY, FEW = 1 << 18, 16


def plan_of(form: SoftmaxForm, columns: int, rows: int = MANY) -> RowPlan:
    return plan_softmax(form, HOPPER, rows=rows, columns=columns, sm_count=132)


def full(plan: RowPlan, columns: int) -> float:
    """The part of the registers of a row's threads that it fills."""
    return columns / (plan.row_threads * plan.cluster * plan.values)


@pytest.mark.parametrize("form", [EXACT, replace(EXACT, operation="logsumexp")])
@pytest.mark.parametrize("columns", range(513, 13_312, 206))
def test_threads_of_few_values_leave_no_tenth_of_them_empty(
    form: SoftmaxForm, columns: int
) -> None:
    plan = plan_of(form, columns)
    assert full(plan, columns) >= 0.8
    assert plan.row_threads <= WARP or plan.values > 16 or full(plan, columns) >= 0.9


def test_other_rows_keep_more_threads() -> None:
    """Whole accesses, cheap exponentials and rows that leave multiprocessors idle."""
    assert plan_of(EXACT, 631).row_threads == 32
    others = (
        replace(EXACT, edges=False), replace(EXACT, operation="log_softmax"),
        replace(EXACT, precision=PRECISIONS["tf32"]),
    )  # fmt: skip
    assert [plan_of(form, 631).row_threads for form in others] == [64, 64, 64]
    assert plan_of(EXACT, 631, rows=FEW).row_threads == 64


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
