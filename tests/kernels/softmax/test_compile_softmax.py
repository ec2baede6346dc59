"""Every kernel of softmax compiles without a GPU, for the oldest target and Hopper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from argand import PRECISIONS
from argand.device import Arch
from argand.multiprocessor import CLUSTER_SM
from argand.runtime.plan import PlanError
from argand.softmax.candidates import fitted
from argand.softmax.formats import OPERATIONS
from argand.softmax.heuristics import plan_softmax
from argand.softmax.legality import check_softmax_plan
from argand.softmax.plan import SoftmaxForm, vector_for
from argand.softmax.source import kernel_name as softmax_name
from argand.softmax.source import softmax_source

from tests.kernels.compiled import ARCHS, Candidate, Kernels, assert_clean, offered
from tests.kernels.precisions import SOFTMAX

SOFTMAX_COLUMNS = (17, 100, 1000, 65_536, 1 << 20)
FEW_ROWS, FEW_ROWS_COLUMNS = 64, 3001
"""Rows that a GPU holds at once, of single elements (`argand.softmax.few_rows`)."""
SOFTMAX_KINDS = {
    "fp64": [("fp64", "fp64"), ("complex128", "fp64")],
    "fp32": [
        ("fp32", "fp32"), ("fp16", "fp16"), ("bf16", "bf16"), ("fp16", "fp32"), ("bf16", "fp32"),
        ("fp32", "bf16"), ("fp64", "fp32"), ("complex64", "fp32"),
    ],
}  # fmt: skip


def softmax_forms(precision: str) -> list[SoftmaxForm]:
    """The kinds at a precision, with rows that begin anywhere or not; logarithms of one kind."""
    row = PRECISIONS[precision]
    kinds = SOFTMAX_KINDS.get(precision, [("fp32", "fp32")])
    cases = [("softmax", *pair) for pair in kinds]
    cases += [(operation, *kinds[0]) for operation in OPERATIONS if operation != "softmax"]
    return [
        SoftmaxForm(
            operation, given, result, row, vector_for(given, result), edges, unit_scale=edges
        )
        for operation, given, result in cases
        for edges in (False, True)
    ]


def kernels() -> Iterator[Candidate]:
    for precision, arch in offered(SOFTMAX):
        for form, columns in product(softmax_forms(precision), SOFTMAX_COLUMNS):
            plan = plan_softmax(form, arch, rows=100_000, columns=columns, sm_count=132)
            traits = (("warps", plan.row_threads > 32), ("blocks share a row", plan.cluster > 1))
            yield Candidate(precision, arch, plan, form, traits)
        for form in softmax_forms(precision):
            if not form.unaligned_rows:
                few = replace(form, vector=1)
                plan = plan_softmax(
                    few, arch, rows=FEW_ROWS, columns=FEW_ROWS_COLUMNS, sm_count=132
                )
                yield Candidate(precision, arch, plan, few, (("few rows", True),))


KERNELS = Kernels(kernels)


@pytest.mark.slow
@pytest.mark.parametrize("precision", SOFTMAX)
def test_every_softmax(arch: Arch, precision: str) -> None:
    for candidate in KERNELS.of(precision, arch):
        form, plan = candidate.more, candidate.plan
        check_softmax_plan(plan, form, arch)
        assert_clean(softmax_source(form, plan), arch.target, softmax_name(form, plan))


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["fp32", "fp16"])
@pytest.mark.parametrize("columns", [100, 4099, 1 << 20])
def test_the_plan_of_a_softmax(arch: Arch, kind: str, columns: int) -> None:
    vector = vector_for(kind, kind)
    form = SoftmaxForm("softmax", kind, kind, PRECISIONS["fp32"], vector, columns % vector != 0)
    plan = plan_softmax(form, arch, rows=512, columns=columns, sm_count=132)
    assert plan.cluster == 1 or arch.sm >= CLUSTER_SM
    assert_clean(softmax_source(form, plan), arch.target, softmax_name(form, plan))


@pytest.mark.parametrize(
    ("operation", "edges", "threads", "columns"),
    [
        ("log_softmax", True, 320, 15_382), ("logsumexp", True, 192, 9248),
        ("logsumexp", True, 320, 16_026), ("logsumexp", False, 320, 15_382),
        ("logsumexp", True, 384, 12_632),
    ],
)  # fmt: skip
def test_logarithms_of_complex_rows_that_fill_registers(
    arch: Arch, operation: str, edges: bool, threads: int, columns: int
) -> None:
    """A thread with 34, 50 or 52 values spills in 80 or 96 registers, so it is given more.

    No plan of `KERNELS` has as few registers to spare.
    """
    vector = vector_for("complex64", "fp32")
    form = SoftmaxForm(operation, "complex64", "fp32", PRECISIONS["fp32"], vector, edges)
    plan = fitted(form, threads, 1, columns)
    assert plan.values in (34, 50, 52)
    check_softmax_plan(plan, form, arch)
    assert_clean(softmax_source(form, plan), arch.target, softmax_name(form, plan))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"row_threads": 48}, "divide 32 or be a multiple"),
        ({"block_threads": 100}, "multiple of 32"),
        ({"block_threads": 512}, "must be the block"),
        ({"values": 6}, "multiple of the vector"),
        ({"cluster": 3}, "power of two"),
        ({"blocks": 9}, "registers"),
        ({"row_threads": 32, "resident": False}, "not held whole"),
        ({"resident": False, "staged": True, "cluster": 2}, "must be resident"),
        ({"staged": True}, "shared by a cluster"),
        ({"values": 256, "staged": True, "cluster": 2}, "more than a block has"),
    ],
)
def test_an_illegal_softmax_plan_says_why(change: dict[str, int], message: str) -> None:
    form = SoftmaxForm("softmax", "fp32", "fp32", PRECISIONS["fp32"], 4, False)
    plan = replace(fitted(form, 256, 1, 4096), **change)
    with pytest.raises(PlanError, match=message):
        check_softmax_plan(plan, form, ARCHS["sm_90a"])


def test_clusters_need_hopper() -> None:
    form = SoftmaxForm("softmax", "fp32", "fp32", PRECISIONS["fp32"], 4, False)
    with pytest.raises(PlanError, match="clusters need sm_90"):
        check_softmax_plan(fitted(form, 256, 2, 8192), form, ARCHS["sm_80"])
