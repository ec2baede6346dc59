"""Products within a workspace limit: their panels, and the plans of these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from argand import PRECISIONS, WorkspaceError
from argand.device import HOPPER, arch_for
from argand.gemm.choice import GemmChoice
from argand.gemm.choice_workspace import partials_capacity, workspace_of
from argand.gemm.heuristics import choose
from argand.gemm.panels import Panels, panels_by_time
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm80.slices import partial_bytes
from argand.gemm.workspace import absmax_bytes

from tests.kernels.gemm.sm80.mma_plans import mma_plan

ARCH, SM_COUNT = arch_for(HOPPER), 132
SQUARE = GemmSizes(1, 4096, 4096, 4096)
TRAITS = OperandTraits(), OperandTraits(k_major=False)


def panels_of(question: Question) -> Panels:
    return next(panels_by_time(question, ARCH, SM_COUNT, None, 1.0))


@pytest.mark.each_value
@pytest.mark.parametrize("precision", ["tf32", "3xtf32", "fp16", "3xfp16", "bf16"])
@pytest.mark.parametrize("limit", [16 << 20, 100 << 20])
@pytest.mark.parametrize(
    "sizes",
    [SQUARE, GemmSizes(1, 300, 20_000, 4096), GemmSizes(90, 512, 512, 900),
     GemmSizes(1, 3000, 3000, 2000, triangle=True)],
    ids=str,
)  # fmt: skip
def test_panels_are_within_the_limit(precision: str, limit: int, sizes: GemmSizes) -> None:
    question = Question(PRECISIONS[precision], sizes, *TRAITS, limit)
    panels = panels_of(question)
    part = question._replace(sizes=panels.largest(sizes))
    choice = choose(part, ARCH, SM_COUNT)
    assert workspace_of(choice, part) <= limit
    if choice.wgmma is not None:
        computed = part._replace(precision=choice.computed_at(part.precision))
        assert partials_capacity(choice, computed) + workspace_of(choice, part) <= limit


def test_a_limit_that_does_not_bind_changes_nothing() -> None:
    question = Question(PRECISIONS["3xtf32"], SQUARE, *TRAITS)
    fastest = choose(question, ARCH, SM_COUNT)
    for limit in (1 << 32, 10**400):  # the second is no float
        limited = question._replace(allowed=limit)
        assert panels_of(limited) == Panels.whole(SQUARE)
        assert choose(limited, ARCH, SM_COUNT) == fastest


def test_large_products_keep_the_tensor_cores_of_hopper() -> None:
    """In panels wgmma is faster than mma.sync, which needs no workspace."""
    question = Question(PRECISIONS["3xtf32"], SQUARE, *TRAITS, 32 << 20)
    panels = panels_of(question)
    assert 1 < panels.times(SQUARE) <= 16
    part = question._replace(sizes=replace(SQUARE, m=panels.rows, n=panels.columns))
    assert choose(part, ARCH, SM_COUNT).family == "wgmma"
    assert choose(question._replace(allowed=0), ARCH, SM_COUNT).family == "mma.sync"


def test_what_is_not_cut() -> None:
    """Packed operands; a batch is cut before its matrices are."""
    row, packed = PRECISIONS["3xtf32"], OperandTraits(packed=True)
    assert panels_of(Question(row, SQUARE, packed, TRAITS[1], 100 << 20)).rows == SQUARE.m
    many = GemmSizes(64, 512, 512, 512)
    panels = panels_of(Question(row, many, *TRAITS, 64 << 20))
    assert (panels.rows, panels.columns) == (512, 512)
    assert 1 < panels.products < 64


def test_batches_of_packed_operands_are_cut_by_lines_of_the_other() -> None:
    sizes, packed = GemmSizes(8, 2048, 2048, 2048), OperandTraits(packed=True, batched=True)
    other = OperandTraits(k_major=False, batched=True)
    question = Question(PRECISIONS["3xfp16"], sizes, packed, other, 64 << 20)
    panels = panels_of(question)
    assert (panels.products, panels.rows) == (8, 2048)
    assert panels.columns < 2048
    part = question._replace(sizes=replace(sizes, n=panels.columns))
    assert workspace_of(choose(part, ARCH, SM_COUNT), part) <= 64 << 20


def test_each_element_is_in_one_panel() -> None:
    sizes = GemmSizes(5, 70, 90, 10)
    times = np.zeros((5, 70, 90), int)
    panels = Panels(2, 32, 33)
    for part in panels.each(sizes):
        times[part] += 1
    assert (times == 1).all()
    assert panels.times(sizes) == len(list(panels.each(sizes))) == 3 * 3 * 3


@pytest.mark.parametrize("cut", [(300, 300), (64, 300), (300, 64), (64, 64), (128, 64), (64, 192)])
def test_panels_of_triangles(cut: tuple[int, int]) -> None:
    """They cover the triangle once; those on the diagonal are triangles or reach above it.

    None begins above it, so that the estimate of their time is of no more panels than there are.
    """
    sizes = GemmSizes(3, 300, 300, 10, triangle=True)
    times = np.zeros((3, 300, 300), int)
    area = 0
    for products, rows, columns in Panels(2, *cut).each(sizes):
        times[products, rows, columns] += 1
        assert rows.start >= columns.start
        area += (rows.stop - rows.start) * (columns.stop - columns.start)
    assert (times[:, *np.tril_indices(300)] == 1).all()
    assert times.max() == 1
    panels = Panels(2, *cut)
    largest = panels.largest(sizes)
    assert largest.triangle == (cut == (300, 300))
    assert area <= 2 * panels.times(sizes) * largest.m * largest.n
    assert panels.times(sizes) <= len(list(panels.each(sizes)))


def test_the_error_says_what_is_needed() -> None:
    """Pairs of 16 bits have no kernel that reads them without planes."""
    half = OperandTraits(half=True)
    sizes = GemmSizes(1, 100, 60, 64)
    with pytest.raises(WorkspaceError, match="product 100x60x64 at fp16") as error:
        panels_of(Question(PRECISIONS["fp16"], sizes, half, half, 1000))
    needed = int(str(error.value).split("needs ")[1].split()[0])
    assert "1000 are allowed" in str(error.value)
    question = Question(PRECISIONS["fp16"], sizes, half, half, needed)
    panels_of(question)
    with pytest.raises(WorkspaceError, match=f"needs {needed} bytes"):
        panels_of(question._replace(allowed=needed - 1))


@pytest.mark.parametrize("precision", ["3xtf32", "3xfp16", "fp16"])
def test_what_mma_sync_takes_is_within_the_limit(precision: str) -> None:
    """The memory has what the absmax kernel finds and what clusters leave for each other."""
    row, (batch, m, n, k) = PRECISIONS[precision], (2, 64, 96, 50_000)
    free = mma_plan(row, ARCH, batch=batch, m=m, n=n, k=k, sm_count=SM_COUNT)
    sizes = GemmSizes(batch, m, n, k)
    shared = []
    for limit in (1 << 30, 1 << 20, 200_000, 4 * batch * (m + n), 0):
        plan = mma_plan(row, ARCH, batch=batch, m=m, n=n, k=k, sm_count=SM_COUNT, allowed=limit)
        partials = partial_bytes(plan) * sizes.tiles(plan.block_m, plan.block_n)
        assert partials + absmax_bytes(row, batch, m, n) <= limit or not partials
        question = Question(row, sizes, *TRAITS, limit)
        needed = partials + absmax_bytes(row, batch, m, n)
        assert workspace_of(GemmChoice(mma=plan), question) == needed
        shared.append(plan.grid_slices)
    assert shared[0] == free.grid_slices > 1
    assert shared[-1] == 1


@pytest.mark.parametrize("precision", ["fp16", "tf32"])
def test_factors_of_packed_operands_are_workspace(precision: str) -> None:
    """Beside scaled planes those that were packed from 16-bit numbers have factors of 1."""
    row, packed = PRECISIONS[precision], OperandTraits(packed=True)
    question = Question(row, SQUARE, packed, packed)
    choice = choose(question, ARCH, SM_COUNT, "wgmma")
    assert workspace_of(choice, question) == 8 * (SQUARE.m + SQUARE.n) * row.scaled
