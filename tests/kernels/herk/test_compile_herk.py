"""Every kernel of Hermitian products compiles without a GPU."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest
from argand import PRECISIONS
from argand.device import Arch
from argand.gemm.candidates import candidates as gemm_choices
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm80.plan import MmaPlan
from argand.gemm.sm80.source import mma_kernel_name, mma_source
from argand.gemm.sm80.tiles import one_tile_of
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.source import wgmma_kernel_name, wgmma_source
from argand.herk.kernel_sources import (
    FinishName,
    finish_name,
    finish_source,
    int8_name,
    int8_source,
    planes_name,
    planes_source,
)
from argand.herk.problem import FORMS, Form
from argand.runtime.plan import WGMMA_TARGET, is_legal

from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import ARCHS, LAYOUTS, Candidate, Kernels, assert_clean, offered
from tests.kernels.gemm.sm80.mma_plans import mma_plan
from tests.kernels.precisions import TENSOR

TYPES = ("complex64", "complex128")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["mirror_tile", "gather_row"])
def test_what_finishes_results(arch: Arch, name: FinishName, dtype: str) -> None:
    assert_clean(finish_source(name, dtype), arch.target, finish_name(name, dtype))


@pytest.mark.parametrize("across", [False, True])
def test_the_packing_of_int8(arch: Arch, across: bool) -> None:
    assert_clean(planes_source(across=across), arch.target, planes_name(across=across))


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("form", FORMS)
def test_the_product_of_int8(dtype: str, form: Form) -> None:
    assert_clean(int8_source(dtype, form), WGMMA_TARGET, int8_name(dtype, form))


def triangles() -> Iterator[Candidate]:
    """Plans of both families: mma.sync in every layout, wgmma with every epilogue."""
    for precision, arch in offered(TENSOR):
        row = PRECISIONS[precision]
        for n in (24, 64, 70, 4096):
            for layout in LAYOUTS:
                plan = mma_plan(
                    row, arch, batch=1, m=n, n=n, k=512, sm_count=132, a_k_major=layout[0],
                    b_k_major=layout[1], vector=2, triangle=True,
                )  # fmt: skip
                yield Candidate(precision, arch, plan, ignored=MMA_SIZES)
        for n in (16, 24, 40, 70):
            for k_major, tile in itertools.product((True, False), one_tile_of(row, arch, n)):
                alone = mma_plan(
                    row, arch, batch=1, m=n, n=n, k=5000, sm_count=132, a_k_major=k_major,
                    b_k_major=k_major, vector=1, triangle=True, tile=tile,
                )  # fmt: skip
                alone = replace(alone, mirror=not (row.scaled and row.terms > 1))
                found = (("tile of one", (tile, k_major)),)
                yield Candidate(precision, arch, alone, traits=found, ignored=MMA_SIZES)
    for precision in TENSOR:
        row, arch = PRECISIONS[precision], ARCHS[WGMMA_TARGET]
        for k_major, n in ((False, 4096), (True, 4096), (True, 70)):
            traits = OperandTraits(k_major=k_major)
            sizes = GemmSizes(1, n, n, 4096, triangle=True)
            for choice in gemm_choices(Question(row, sizes, traits, traits), arch, 132):
                if choice.wgmma is None:
                    continue
                descaled = replace(choice.wgmma, tma_epilogue=True, epilogue="descale")
                plans = [choice.wgmma, replace(choice.wgmma, tma_epilogue=True), descaled]
                plans.append(replace(descaled, overlapped_stages=choice.wgmma.stages - 1))
                plans.append(replace(choice.wgmma, epilogue="descale_shifted_rows"))
                for one in (*plans, *(replace(one, mirror=True) for one in plans)):
                    if is_legal(check_wgmma_plan, one, row, arch):
                        yield Candidate(precision, arch, one, ignored=WGMMA_SIZES)


MMA_SIZES = frozenset({
    "block_m", "block_n", "block_k", "stages", "promotion_interval", "warps_m", "warps_n",
    "warps_k", "cluster", "vector",
})  # fmt: skip
WGMMA_SIZES = frozenset({"stages", "block_k", "block_n", "overlapped_stages"})
TRIANGLES = Kernels(triangles)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("precision", TENSOR)
def test_products_of_the_lower_triangle(arch: Arch, precision: str) -> None:
    for candidate in TRIANGLES.of(precision, arch):
        compile_triangle(precision, candidate.plan, arch)


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("precision", ["tf32", "3xfp16"])
def test_the_largest_tiles_of_a_triangle(arch: Arch, precision: str) -> None:
    """The order of tiles is new; `test_compile` compiles everything else of these plans."""
    row, sizes = PRECISIONS[precision], GemmSizes(1, 4096, 4096, 4096, triangle=True)
    traits = OperandTraits(), OperandTraits(conjugated=True)
    plan = gemm_choices(Question(row, sizes, *traits), arch, 132)[
        -1 if arch.target == WGMMA_TARGET else 0
    ].wgmma
    tile = mma_plan(row, arch, batch=1, m=4096, n=4096, k=4096, sm_count=132, triangle=True)
    for one in (tile, plan) if EXHAUSTIVE else (plan or tile,):
        if one is not None:
            compile_triangle(precision, one, arch)


def compile_triangle(precision: str, plan: MmaPlan | WgmmaPlan, arch: Arch) -> None:
    row = PRECISIONS[precision]
    if isinstance(plan, WgmmaPlan):
        assert_clean(wgmma_source(row, plan), arch.target, wgmma_kernel_name(row, plan))
    else:
        assert_clean(mma_source(row, plan), arch.target, mma_kernel_name(row, plan))
