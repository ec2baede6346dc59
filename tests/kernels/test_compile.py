"""Every CUDA kernel compiles without a GPU, for the oldest target and Hopper.

Without spills, without a stack, and without a word of the assembler's about slow code.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from argand import PRECISIONS, Precision
from argand.device import ARCHITECTURES, Arch
from argand.dft_choice import candidates as dft_candidates
from argand.dft_choice import estimate, own_plan
from argand.dft_limits import check_dft_plan, wide_fits
from argand.dft_method import Method, dense, method_for
from argand.dft_method import product as dft_product
from argand.dft_plan import Plan, ProductPlan, dft_source
from argand.dft_plan import kernel_name as dft_name
from argand.gemm_choice import GemmSizes, OperandTraits, choose
from argand.gemm_choice import candidates as gemm_choices
from argand.gemm_plan import (
    GemmPlan,
    PlanError,
    candidates,
    check_plan,
    gemm_source,
    kernel_name,
    plan_gemm,
    whole_passes,
)
from argand.gpu_timing import HOLD_KERNEL, HOLD_SOURCE
from argand.nvrtc import compile_cubin
from argand.pack_plan import PackPlan, pack_kernel_name, pack_source
from argand.precision import ROUNDINGS
from argand.scan_plan import SCAN_KERNEL, scan_source
from argand.softmax_choice import fitted, plan_softmax
from argand.softmax_formats import OPERATIONS
from argand.softmax_plan import SoftmaxForm, check_softmax_plan, vector_for
from argand.softmax_source import kernel_name as softmax_name
from argand.softmax_source import softmax_source
from argand.wgmma_plan import (
    TARGET,
    WgmmaPlan,
    check_wgmma_plan,
    wgmma_kernel_name,
    wgmma_source,
)

ARCHS = {arch.target: arch for arch in ARCHITECTURES if arch.target in ("sm_80", "sm_90a")}
TENSOR = [name for name, row in PRECISIONS.items() if not row.exact_operands]
SINGLE_HALF = [
    name for name in TENSOR if PRECISIONS[name].operand.bytes == 2 and PRECISIONS[name].terms == 1
]
LAYOUTS = [(True, False), (False, True), (True, True), (False, False)]


def assert_clean(source: str, target: str, kernel: str) -> None:
    compiled = compile_cubin(source, target)
    resources = compiled.resources[kernel]
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)
    assert 0 < resources.registers <= 255
    assert compiled.warnings == ()


@pytest.fixture(params=ARCHS, scope="module")
def arch(request: pytest.FixtureRequest) -> Arch:
    return ARCHS[request.param]


def test_both_ends_of_the_family_are_listed() -> None:
    assert set(ARCHS) == {"sm_80", "sm_90a"}


# The largest tile takes the most registers, so it alone is compiled in every layout.
@pytest.mark.slow
@pytest.mark.parametrize("precision", TENSOR)
def test_every_gemm_tile(arch: Arch, precision: str) -> None:
    row = PRECISIONS[precision]
    largest, *others = candidates(row, arch)
    plans = [with_layout(largest, layout, vector) for layout in LAYOUTS for vector in (1, 2)]
    for tile in others:
        plans += [with_layout(tile, LAYOUTS[0], 2), with_layout(tile, LAYOUTS[1], 1)]
    if row.scaled:
        plans += [replace(plan, looks=True, stages=2) for plan in plans]
    for plan in plans:
        check_plan(plan, row, arch)
        assert_clean(gemm_source(row, plan), arch.target, kernel_name(row, plan))


def with_layout(plan: GemmPlan, layout: tuple[bool, bool], vector: int) -> GemmPlan:
    """The tile with this layout, one number a copy where two do not fill a pass of the block."""
    plan = replace(plan, a_k_fast=layout[0], b_k_fast=layout[1])
    return replace(plan, vector=vector if whole_passes(replace(plan, vector=vector)) else 1)


@pytest.mark.parametrize("precision", TENSOR)
def test_the_plan_of_a_large_gemm(arch: Arch, precision: str) -> None:
    row = PRECISIONS[precision]
    plan = plan_gemm(row, arch, batch=1, m=4096, n=4096, k=4096, cores=132, vector=2)
    assert plan.block_m == 128
    assert_clean(gemm_source(row, plan), arch.target, kernel_name(row, plan))


@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_every_rounding(arch: Arch, precision: str, rounding: str) -> None:
    row = PRECISIONS[precision].with_rounding(rounding)
    plan = candidates(row, arch)[0]
    assert_clean(gemm_source(row, plan), arch.target, kernel_name(row, plan))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_scan_for_scales(arch: Arch, layout: tuple[bool, bool]) -> None:
    assert_clean(scan_source(*layout), arch.target, SCAN_KERNEL)


def wgmma_plans(precision: str) -> list[WgmmaPlan]:
    """Every plan that can be chosen at a precision, whatever the operands are."""
    found: dict[WgmmaPlan, None] = {}
    halves = (False, True) if precision in SINGLE_HALF else (False,)
    for half, half_output, k_fast in product(halves, halves, (False, True)):
        traits = OperandTraits(half=half, k_fast=k_fast)
        sizes = GemmSizes(1, 4096, 4096, 4096, half_output)
        for choice in gemm_choices(PRECISIONS[precision], ARCHS[TARGET], sizes, traits, traits):
            if choice.plan is not None:
                found[choice.plan] = None
    return list(found)


def ways_to_store(precision: str, plan: WgmmaPlan) -> list[WgmmaPlan]:
    """The plan, and with results that go through shared memory where there is room for them."""
    staged = [replace(plan, staged=True, rows_fast=rows_fast) for rows_fast in (False, True)]
    return [plan, *(x for x in staged if is_legal(precision, x))]


def is_legal(precision: str, plan: WgmmaPlan) -> bool:
    try:
        check_wgmma_plan(plan, PRECISIONS[precision], ARCHS[TARGET])
    except PlanError:
        return False
    return True


# The largest tile takes the most registers, so it alone is compiled in every layout.
@pytest.mark.slow
@pytest.mark.parametrize("precision", TENSOR)
def test_every_wgmma_tile(precision: str) -> None:
    row = PRECISIONS[precision]
    seen = set()
    for plan in wgmma_plans(precision):
        if plan.prescaled and not row.scaled and plan.storage == "planar":
            continue  # the code of the plan without it
        tile = (plan.storage, plan.packs, plan.block_m, plan.block_n)
        largest = (plan.block_m, plan.block_n) == (128, 128)
        if largest or tile not in seen:
            every = ways_to_store(precision, plan)
            for way in every if largest else every[:2]:
                assert_clean(wgmma_source(row, way), TARGET, wgmma_kernel_name(row, way))
        seen.add(tile)


def test_every_way_to_store_an_operand_is_compiled() -> None:
    ways = {name: {(plan.storage, plan.k_fast) for plan in wgmma_plans(name)} for name in TENSOR}
    planar, interleaved = ("planar", False), {("fp32", False), ("fp32", True)}
    half = {("half", False), ("half", True)}
    assert ways == {
        "tf32": {planar, *interleaved}, "3xtf32": {planar, *interleaved}, "3xfp16": {planar},
        "fp16": {planar, *half}, "bf16": {planar, *interleaved, *half},
    }  # fmt: skip
    for name in SINGLE_HALF:
        assert {plan.half_output for plan in wgmma_plans(name)} == {False, True}
        assert {plan.prescaled for plan in wgmma_plans(name)} == {False, PRECISIONS[name].scaled}


@pytest.mark.parametrize("precision", TENSOR)
def test_the_wgmma_plan_of_a_large_gemm(precision: str) -> None:
    row, left, right = PRECISIONS[precision], OperandTraits(), OperandTraits(k_fast=False)
    plan = choose(row, ARCHS[TARGET], 132, GemmSizes(1, 4096, 4096, 4096), left, right).plan
    assert plan is not None
    assert_clean(wgmma_source(row, plan), TARGET, wgmma_kernel_name(row, plan))


@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_every_rounding_on_hopper(precision: str, rounding: str) -> None:
    row = PRECISIONS[precision].with_rounding(rounding)
    plan = wgmma_plans(precision)[0]
    assert_clean(wgmma_source(row, plan), TARGET, wgmma_kernel_name(row, plan))
    packs = [PackPlan(vector=2)]
    assert_clean(pack_source(row, packs), TARGET, pack_kernel_name(row, packs))


@pytest.mark.parametrize("precision", TENSOR)
def test_every_packing(precision: str) -> None:
    row = PRECISIONS[precision]
    halves = (False, True) if precision in SINGLE_HALF else (False,)
    for half, vector in product(halves, (1, 2)):
        alone = [[PackPlan(half, k_fast, vector)] for k_fast in (False, True)]
        both = [PackPlan(half, True, vector), PackPlan(half, False, vector)]
        for plans in (*alone, both):
            assert_clean(pack_source(row, plans), TARGET, pack_kernel_name(row, plans))


def test_what_holds_a_stream(arch: Arch) -> None:
    assert_clean(HOLD_SOURCE, arch.target, HOLD_KERNEL)


def test_the_sum_over_parts_of_k() -> None:
    """The launch's own source (`cuda_reduce`) says the same, but needs CuPy to be imported."""
    source = (
        '#include "gemm_reduce.cuh"\n'
        'extern "C" __global__ void __launch_bounds__(256)\n'
        "f(const __grid_constant__ ReduceArguments args) { add_parts(args); }\n"
    )
    assert_clean(source, TARGET, "f")


SOFTMAX_COLUMNS = (17, 1000, 65_536, 1 << 20)
SOFTMAX_KINDS = {
    "fp64": [("fp64", "fp64"), ("complex128", "fp64")],
    "fp32": [
        ("fp32", "fp32"), ("fp16", "fp16"), ("bf16", "bf16"), ("fp16", "fp32"), ("fp32", "bf16"),
        ("fp64", "fp32"), ("complex64", "fp32"),
    ],
}  # fmt: skip


def softmax_forms(precision: str) -> list[SoftmaxForm]:
    """The kinds at a precision, with rows that begin anywhere or not; logarithms of one kind."""
    row = PRECISIONS[precision]
    kinds = SOFTMAX_KINDS.get(precision, [("fp32", "fp32")])
    cases = [("softmax", *pair) for pair in kinds]
    cases += [(operation, *kinds[0]) for operation in OPERATIONS if operation != "softmax"]
    return [
        SoftmaxForm(operation, given, result, row, vector_for(given, result), edges, unit=edges)
        for operation, given, result in cases
        for edges in (False, True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_softmax(arch: Arch, precision: str) -> None:
    for form in softmax_forms(precision):
        for columns in SOFTMAX_COLUMNS:
            plan = plan_softmax(form, arch, rows=10_000, columns=columns, cores=132)
            check_softmax_plan(plan, form, arch)
            assert_clean(softmax_source(form, plan), arch.target, softmax_name(form, plan))


@pytest.mark.parametrize("kind", ["fp32", "fp16"])
@pytest.mark.parametrize("columns", [100, 4099, 1 << 20])
def test_the_plan_of_a_softmax(arch: Arch, kind: str, columns: int) -> None:
    vector = vector_for(kind, kind)
    form = SoftmaxForm("softmax", kind, kind, PRECISIONS["fp32"], vector, columns % vector != 0)
    plan = plan_softmax(form, arch, rows=512, columns=columns, cores=132)
    assert plan.cluster == 1 or arch.target == "sm_90a"
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
        ({"resident": False, "staged": True}, "held whole"),
        ({"values": 256, "staged": True}, "more than a block has"),
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


DENSE = (2, 64, 97, 127, 163, 251, 383, 509, 719)
PRODUCTS = ((16, 16), (40, 25), (32, 32))
CONVOLVED = (521, 1009, 2039, 4093, 8191, 10_007, 16_384)


@pytest.mark.slow
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(
    "method",
    [*map(dense, DENSE), *(dft_product(*pair) for pair in PRODUCTS), *map(method_for, CONVOLVED)],
    ids=str,
)
def test_every_transform(arch: Arch, precision: str, method: Method) -> None:
    """Of each kind of kernel the best plan, a middling one and that with most sums in registers."""
    row = PRECISIONS[precision]
    for wide in {False, wide_fits(method.kind, method.length, method.length)}:
        kinds: dict[tuple[str, bool], list[Plan]] = {}
        for plan in sorted(dft_candidates(method, row, arch, wide=wide), key=estimate):
            kinds.setdefault((plan.kind, getattr(plan, "rader", False)), []).append(plan)
        for plan in {
            plan for some in kinds.values()
            for plan in (some[0], some[len(some) // 2], max(some, key=lambda plan: plan.sums))
        }:  # fmt: skip
            check_dft_plan(plan, row, arch)
            assert_clean(dft_source(plan, row), arch.target, dft_name(plan, row))


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("length", [64, 97, 127, 251, 1009, 1024])
def test_the_plan_of_a_transform(arch: Arch, precision: str, length: int) -> None:
    row, method = PRECISIONS[precision], method_for(length)
    for wide in {False, wide_fits(method.kind, length, length)}:
        plan = own_plan(method, row, arch, wide=wide)
        assert plan is not None
        assert plan.wide == wide
        assert_clean(dft_source(plan, row), arch.target, dft_name(plan, row))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"warps": 1}, "must hold all"),
        ({"first": 1}, "first must be at least 2, got 1"),
        ({"first": 121}, "factors must be at most 120"),
        ({"groups": 0}, "groups must be at least 1, got 0"),
        ({"groups": 16}, "at most 15, got 16"),
        ({"groups": 9}, "registers beside them are more than"),
        ({"buffers": 9}, "is more than the 232448 that a block has on sm_90a"),
        ({"second": 31, "first": 31}, "need an even length, got 961"),
    ],
)
def test_an_illegal_plan_of_transforms_says_why(change: dict[str, int], message: str) -> None:
    plan = replace(ProductPlan(32, 32, 2, 1, 7, 2, True), **change)
    with pytest.raises(PlanError, match=message):
        check_dft_plan(plan, PRECISIONS["3xfp16"], ARCHS["sm_90a"])


@pytest.mark.parametrize("arch_row", ARCHITECTURES, ids=lambda row: row.target)
@pytest.mark.parametrize("precision", TENSOR)
def test_every_architecture_has_a_plan(arch_row: Arch, precision: str) -> None:
    for m, n in ((1, 1), (16, 100_000), (4096, 4096), (1, 70_000)):
        for vector in (1, 2):
            for a_k_fast, b_k_fast in LAYOUTS:
                plan = plan_gemm(
                    PRECISIONS[precision], arch_row, batch=3, m=m, n=n, k=64, cores=108,
                    a_k_fast=a_k_fast, b_k_fast=b_k_fast, vector=vector,
                )  # fmt: skip
                assert plan.shared_bytes <= arch_row.shared_bytes


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("k", [1, 40, 256, 257])
def test_small_scaled_products_have_stages_for_all_of_k(precision: str, k: int) -> None:
    row = PRECISIONS[precision]
    plan = plan_gemm(row, ARCHS["sm_90a"], batch=1, m=256, n=256, k=k, cores=132, vector=2)
    assert plan.looks == (row.scaled and k <= 256)
    assert not plan.looks or (plan.stages - 1) * plan.block_k >= k


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_k": 24}, "multiples of 16"),
        ({"warps_k": 3}, "for each of warps_k"),
        ({"looks": True}, "only a precision that scales"),
        ({"block_m": 120}, "multiple of 16 warps_m"),
        ({"promote_every": 24}, "promote_every must be a multiple"),
        ({"vector": 4}, "vector must be 1 or 2"),
        ({"stages": 1}, "stages must be at least 2"),
        ({"stages": 9}, "bytes of shared memory"),
    ],
)
def test_an_illegal_plan_says_why(change: dict[str, int], message: str) -> None:
    row: Precision = PRECISIONS["tf32"]
    arch = ARCHS["sm_80"]
    plan = replace(candidates(row, arch)[0], **change)
    with pytest.raises(PlanError, match=message):
        check_plan(plan, row, arch)


def test_fp64_has_no_tensor_core_plan() -> None:
    row = PRECISIONS["tf32"]
    with pytest.raises(PlanError, match="operand must be one of"):
        check_plan(candidates(row, ARCHS["sm_80"])[0], PRECISIONS["fp64"], ARCHS["sm_80"])
