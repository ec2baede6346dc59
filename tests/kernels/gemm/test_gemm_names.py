"""Names of launches of products, and the families of kernels that may be asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Device, DeviceError, gemm, launched, pack
from argand.device import ARCHITECTURES, arch_for
from argand.gemm.candidates import candidates
from argand.gemm.choice import GemmChoice
from argand.gemm.families import families_of, require_family
from argand.gemm.heuristics import choose
from argand.gemm.names import in_place_name, wgmma_name
from argand.gemm.problem import gemm_problem
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.scheduler import TileDivision, divide
from argand.runtime.launch import kernel_trace
from argand.runtime.plan import PlanError

from tests.kernels.gemm.sm80.mma_plans import mma_plan
from tests.kernels.precisions import TENSOR

HOPPER = arch_for(90)
A, B = OperandTraits(), OperandTraits(k_major=False)
PACKED, HALF = OperandTraits(packed=True), OperandTraits(half=True)
SIZES = GemmSizes(1, 4096, 4096, 4096)
WHOLE = TileDivision(132, 1024)


def test_a_name_says_how_each_operand_came_and_what_was_cut() -> None:
    plan = WgmmaPlan(2, 128, 32, 3, fused_pack=True)
    found = wgmma_name(GemmChoice(plan), plan, divide(1024, 132, 128, 32), A, B)
    assert found == (
        "wgmma 128x128x32 3 stages: A in place, B by fused packing, 100 of 1024 tiles stream-K"
    )
    planar = replace(plan, storage="planar", fused_pack=False, overlapped_stages=2)
    assert wgmma_name(GemmChoice(planar), planar, WHOLE, A, PACKED) == (
        "wgmma 128x128x32 3 stages: A packed, B packed before, overlapped epilogue of 2 stages"
    )
    half = replace(planar, storage="half", overlapped_stages=0, prescaled=True)
    assert wgmma_name(
        GemmChoice(half, swapped=True, split_k_slices=4), half, WHOLE, HALF, HALF
    ) == (
        "wgmma 128x128x32 3 stages: B in place from pairs, A packed from pairs, unscaled, "
        "4 split-K slices"
    )


@pytest.mark.parametrize("precision", TENSOR)
def test_different_candidates_have_different_names(precision: str) -> None:
    row = PRECISIONS[precision]
    choices = candidates(Question(row, GemmSizes(1, 64, 64, 100_000), A, B), HOPPER, 132)
    names = [
        wgmma_name(choice, choice.wgmma, WHOLE, A, B)
        if choice.wgmma
        else in_place_name(small_plan(row), row, A, B)
        for choice in choices
    ]
    assert len(set(names)) == len(names) > 10


def small_plan(row: Any, k: int = 64) -> Any:
    return mma_plan(row, HOPPER, batch=1, m=64, n=64, k=k, sm_count=132)


@pytest.mark.parametrize("precision", TENSOR)
def test_a_name_of_mma_sync_says_its_tile_and_how_it_scales(precision: str) -> None:
    row = PRECISIONS[precision]
    for k in (64, 4096):
        plan = small_plan(row, k)
        found = in_place_name(plan, row, A, replace(PACKED, copied=True))
        assert found.startswith(f"mma.sync {plan.block_m}x{plan.block_n}x{plan.block_k} ")
        assert ": A in place, B copied before" in found
        by_block = row.scaled and plan.finds_absmax
        assert by_block or not row.scaled or k == 4096
        assert ("absmax by each block" in found) == by_block
        assert ("absmax by a launch before" in found) == (row.scaled and not by_block)
        slices = plan.slices
        assert (f", {slices} split-K slices" in found) == (slices > 1) == (k == 4096)
        assert (f" in {plan.grid_slices} clusters: " in found) == (plan.grid_slices > 1)


def test_contexts_list_each_launch_once_and_may_be_nested() -> None:
    with launched() as outer:
        kernel_trace.note("one")
        with launched() as inner:
            kernel_trace.note("two")
            kernel_trace.note("two")
        kernel_trace.note("one")
    kernel_trace.note("three")
    assert (outer, inner) == (["one", "two"], ["two"])
    assert not kernel_trace.watching


def test_the_cpu_leaves_no_name() -> None:
    with launched() as names:
        gemm(np.eye(3), np.eye(3), precision="tf32")
    assert names == []


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("family", ["wgmma", "mma.sync"])
def test_the_family_that_is_asked_for_is_chosen(precision: str, family: Any) -> None:
    row = PRECISIONS[precision]
    for sizes in (SIZES, GemmSizes(1, 20, 30, 40), GemmSizes(1, 16, 16, 100_000)):
        assert choose(Question(row, sizes, A, B), HOPPER, 132, family).family == family


def test_what_mma_sync_cannot_read_is_refused() -> None:
    row = PRECISIONS["fp16"]
    copied = replace(PACKED, copied=True)
    assert choose(Question(row, SIZES, A, copied), HOPPER, 132, "mma.sync") == GemmChoice()
    for a, b in ((A, PACKED), (copied, PACKED), (HALF, HALF)):
        with pytest.raises(PlanError, match=r"no mma.sync for fp16 on Hopper.* with packed"):
            choose(Question(row, SIZES, a, b), HOPPER, 132, "mma.sync")


def test_families_by_precision_and_card() -> None:
    assert families_of(PRECISIONS["tf32"]) == ("wgmma", "mma.sync")
    assert families_of(PRECISIONS["fp32"]) == ("cublas",)
    older = Device("cuda", "a card", arch=ARCHITECTURES[0])
    for family in (None, "mma.sync", "cublas"):
        require_family(family, older)  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match="wgmma needs sm_90a, and a card is sm_80"):
        require_family("wgmma", older)


@pytest.mark.parametrize(
    ("precision", "kernels", "message"),
    [
        ("tf32", "cublas", r"kernels at tf32 must be one of \['wgmma', 'mma.sync'\], got 'cublas'"),
        ("fp32", "mma.sync", r"kernels at fp32 must be one of \['cublas'\], got 'mma.sync'"),
        ("bf16", "mma", r"kernels at bf16 must be one of .* got 'mma'"),
    ],
)
def test_a_family_that_a_precision_has_not(precision: str, kernels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gemm_problem((3, 3), (3, 3), precision=precision, kernels=kernels)
    with pytest.raises(ValueError, match=message):
        gemm(np.eye(3), np.eye(3), precision=precision, kernels=kernels)
    with pytest.raises(ValueError, match=message):
        pack(np.eye(3), precision, kernels=kernels)


def test_the_cpu_has_no_families() -> None:
    for call in (lambda: gemm(np.eye(3), np.eye(3), precision="tf32", kernels="mma.sync"),
                 lambda: pack(np.eye(3), "tf32", kernels="mma.sync")):  # fmt: skip
        with pytest.raises(
            DeviceError, match=r"kernels are a GPU's: on .* there is no 'mma\.sync'"
        ):
            call()
