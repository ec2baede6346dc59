"""Every kernel of products compiles without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain, product

import pytest
from argand import PRECISIONS
from argand.device import Arch, arch_for
from argand.gemm.absmax_source import ABSMAX_KERNEL, absmax_source
from argand.gemm.candidates import EVERY_CLUSTER_K
from argand.gemm.candidates import candidates as gemm_choices
from argand.gemm.fma.plan import FMA_PLANS, MAX_K, FmaPlan, fma_kernel_name, fma_plans, fma_source
from argand.gemm.pack.plan import PackPlan, panel_rows
from argand.gemm.pack.source import pack_kernel_name, pack_source
from argand.gemm.pack.tiles import laid_out
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm80.legality import check_mma_plan, whole_passes
from argand.gemm.sm80.plan import CLUSTER_SIZES, MmaPlan
from argand.gemm.sm80.source import mma_kernel_name, mma_source
from argand.gemm.sm80.tiles import mma_tiles, with_copies, within_registers
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.sm90.plan import EPILOGUES, WgmmaPlan
from argand.gemm.sm90.source import wgmma_kernel_name, wgmma_source
from argand.gemm.sm90.splitk_source import REDUCE_KERNEL, reduce_source
from argand.gemm.sm90.tiles import with_ping_pong, with_rounded_rows
from argand.operand_format import ROUNDINGS
from argand.precision import Precision
from argand.runtime.measuring.timing import HOLD_KERNEL, HOLD_SOURCE
from argand.runtime.plan import WGMMA_TARGET, PlanError, is_legal

from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import ARCHS, LAYOUTS, SHORT, Candidate, Kernels, assert_clean, offered
from tests.kernels.precisions import READ_IN_PLACE, SINGLE_HALF, TENSOR


def test_both_ends_of_the_families_are_compiled_for() -> None:
    assert set(SHORT) <= set(ARCHS)


# The largest tile takes the most registers, so it alone is compiled in every layout, and kernels
# that find the absmax at the widest copies alone, which hold most in registers. It compiles longest
# too, so it comes last and small ones first: a cover takes the first of equals.
def gemm_tiles() -> Iterator[Candidate]:
    for precision, arch in offered(TENSOR):
        row = PRECISIONS[precision]
        largest, *others = mma_tiles(row, arch)
        plans = []
        for tile in sorted(others, key=lambda one: one.block_m * one.block_n):
            plans += [with_layout(tile, LAYOUTS[0], 2), with_layout(tile, LAYOUTS[1], 1)]
        plans += [with_layout(largest, layout, vector) for layout in LAYOUTS for vector in (1, 2)]
        if row.scaled:
            plans += [
                replace(plan, finds_absmax=True, stages=2) for plan in plans if plan.vector == 2
            ]
        cut = list(chain.from_iterable(in_slices(plan, row, arch) for plan in plans))
        copied = (with_copies(plan, row, arch, k) for plan in cut for k in (1, 64, 4096))
        for one in chain(cut, copied):
            is_largest = (one.block_m, one.block_n) == (largest.block_m, largest.block_n)
            traits = (
                ("in slices", one.cluster > 1),
                ("accumulators", (is_largest, is_largest and (row.scaled, row.terms))),
            )
            yield Candidate(precision, arch, one, traits=traits)


def in_slices(plan: MmaPlan, row: Precision, arch: Arch) -> Iterator[MmaPlan]:
    """The tile, also with k cut over the blocks of a cluster where that is legal."""
    for slices in CLUSTER_SIZES:
        one = within_registers(replace(plan, cluster=slices), row, arch)
        with suppress(PlanError):
            check_mma_plan(one, row, arch)
            yield one


TILES = Kernels(gemm_tiles)


@pytest.mark.slow
@pytest.mark.parametrize("precision", TENSOR)
def test_every_gemm_tile(arch: Arch, precision: str) -> None:
    row = PRECISIONS[precision]
    for candidate in TILES.of(precision, arch):
        check_mma_plan(candidate.plan, row, arch)
        source, name = mma_source(row, candidate.plan), mma_kernel_name(row, candidate.plan)
        assert_clean(source, arch.target, name)


def with_layout(plan: MmaPlan, layout: tuple[bool, bool], vector: int) -> MmaPlan:
    """The tile with this layout, one number a copy where two do not fill a pass of the block."""
    plan = replace(plan, a_k_major=layout[0], b_k_major=layout[1])
    return replace(plan, vector=vector if whole_passes(replace(plan, vector=vector)) else 1)


@pytest.mark.each_value
@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_every_rounding(arch: Arch, precision: str, rounding: str) -> None:
    row = PRECISIONS[precision].with_rounding(rounding)
    plan = mma_tiles(row, arch)[0 if EXHAUSTIVE else -1]
    assert_clean(mma_source(row, plan), arch.target, mma_kernel_name(row, plan))


@pytest.mark.each_value
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_absmax_kernel(arch: Arch, layout: tuple[bool, bool]) -> None:
    assert_clean(absmax_source(*layout), arch.target, ABSMAX_KERNEL)


def wgmma_plans(precision: str) -> list[WgmmaPlan]:
    """Every plan that can be chosen at a precision, whatever the operands are."""
    found: dict[WgmmaPlan, None] = {}
    halves = (False, True) if precision in SINGLE_HALF else (False,)
    parities = (False, False), (True, False), (True, True)  # of lines and of matrices
    kinds = product(halves, halves, (False, True), parities)
    for half, half_output, k_major, (odd_pitch, odd_batches) in kinds:
        if half and odd_pitch:
            continue
        traits = OperandTraits(
            not odd_pitch, k_major, half, odd_pitch=odd_pitch, odd_batches=odd_batches
        )
        large = GemmSizes(1, 4096, 4096, 4096, half_output)
        sizes = (large, GemmSizes(1, 64, 64, EVERY_CLUSTER_K, half_output))
        row = PRECISIONS[precision]
        for size, other in product(sizes, (traits, OperandTraits(packed=True))):
            for choice in gemm_choices(
                Question(row, size, traits, other), ARCHS[WGMMA_TARGET], 132
            ):
                if choice.wgmma is not None:
                    found[choice.wgmma] = None
    launched = [with_rounded_rows(plan, row) for plan in found]
    turns = [with_ping_pong(plan, row, 48, 133, 132) for plan in launched]
    return list(dict.fromkeys([*launched, *turns]))


def epilogues(precision: str, plan: WgmmaPlan) -> list[WgmmaPlan]:
    """The plan with every direct, TMA and overlapped epilogue that is legal, the plan first."""
    row, arch = PRECISIONS[precision], ARCHS[WGMMA_TARGET]
    staged = [
        replace(plan, tma_epilogue=True, out_m_major=out_m_major) for out_m_major in (False, True)
    ]
    overlapped = [replace(x, overlapped_stages=x.stages - 1) for x in staged]
    every = [
        replace(x, epilogue=epilogue)
        for x in (plan, *staged, *overlapped) for epilogue in EPILOGUES
    ]  # fmt: skip
    return [x for x in every if is_legal(check_wgmma_plan, x, row, arch)]


# The largest tile takes the most registers, so it alone is compiled in every layout, and so are the
# tiles of one cluster: a block of a cluster has a single work item, all of which the compiler may
# keep in the producer's registers.
def wgmma_tiles() -> Iterator[Candidate]:
    for precision in TENSOR:
        row, seen = PRECISIONS[precision], set()
        for plan in wgmma_plans(precision):
            if plan.prescaled and not row.scaled and plan.storage == "planar":
                continue  # the code of the plan without it
            shape = plan.block_m, plan.block_n
            tile = (plan.storage, plan.fused_pack, plan.cluster, shape, plan.ping_pong)
            layout = (plan.k_major, plan.odd_pitch, plan.odd_batches) if plan.cluster == 2 else ()
            tile = (*tile, *layout)
            largest = shape == (128, 128)
            if largest or tile not in seen:
                every = epilogues(precision, plan)
                for one in every if largest else (every[0], every[-1]):
                    traits = (
                        ("read", (one.storage, one.k_major, one.odd_pitch)),
                        ("odd batches", one.odd_batches and (one.k_major, one.cluster > 1)),
                        ("written", (row.scaled, one.tma_epilogue, one.out_m_major)),
                    )
                    yield Candidate(precision, ARCHS[WGMMA_TARGET], one, traits=traits)
            seen.add(tile)


WGMMA_TILES = Kernels(wgmma_tiles)


@pytest.mark.slow
@pytest.mark.parametrize("precision", TENSOR)
def test_every_wgmma_tile(precision: str) -> None:
    row = PRECISIONS[precision]
    for candidate in WGMMA_TILES.of(precision, ARCHS[WGMMA_TARGET]):
        plan = candidate.plan
        assert_clean(wgmma_source(row, plan), WGMMA_TARGET, wgmma_kernel_name(row, plan))


def test_every_storage_of_an_operand_is_compiled() -> None:
    planar, interleaved = ("planar", False), {("fp32", False), ("fp32", True)}
    half = {("half", False), ("half", True)}
    for name in TENSOR:
        storages = {(plan.storage, plan.k_major) for plan in wgmma_plans(name)}
        unpacked = interleaved if name in READ_IN_PLACE else set()
        assert storages == {planar, *unpacked, *(half if name in SINGLE_HALF else ())}
    for name in SINGLE_HALF:
        assert {plan.half_output for plan in wgmma_plans(name)} == {False, True}
        assert {plan.prescaled for plan in wgmma_plans(name)} == {False, PRECISIONS[name].scaled}


@pytest.mark.each_value
@pytest.mark.parametrize("precision", [x for x in TENSOR if not PRECISIONS[x].scaled])
@pytest.mark.parametrize("plan", FMA_PLANS, ids=str)
def test_every_plan_of_fma(precision: str, plan: FmaPlan) -> None:
    row = PRECISIONS[precision]
    assert plan in (*fma_plans(row, 1), *fma_plans(row, MAX_K))
    assert_clean(fma_source(row, plan), WGMMA_TARGET, fma_kernel_name(row, plan))


def test_strides_beyond_32_bits() -> None:
    row = PRECISIONS["tf32"]
    tile = replace(mma_tiles(row, ARCHS[WGMMA_TARGET])[-1], any_strides=True)
    plan = replace(FMA_PLANS[-1], any_strides=True)
    assert_clean(mma_source(row, tile), WGMMA_TARGET, mma_kernel_name(row, tile))
    assert_clean(fma_source(row, plan), WGMMA_TARGET, fma_kernel_name(row, plan))


@pytest.mark.each_value
@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("what", ["multiplies", "packs"])
def test_every_rounding_on_hopper(precision: str, rounding: str, what: str) -> None:
    row = PRECISIONS[precision].with_rounding(rounding)
    if what == "packs":
        packs = [PackPlan(vector=2)]
        assert_clean(pack_source(row, packs), WGMMA_TARGET, pack_kernel_name(row, packs))
    else:
        every = wgmma_plans(precision)
        plan = every[0] if EXHAUSTIVE else min(every, key=lambda one: one.block_m * one.block_n)
        assert_clean(wgmma_source(row, plan), WGMMA_TARGET, wgmma_kernel_name(row, plan))


def packings() -> Iterator[Candidate]:
    """Packings of one operand of any layout, or of both; of 16 bits, of fp32, or one of each.

    Few panels are packed in small tiles.
    """
    for precision, k, vector, panels in product(TENSOR, (64, 512, 2048, 4096), (1, 2), (1, 40)):
        row = PRECISIONS[precision]
        halves = (False, True) if precision in SINGLE_HALF else (False,)
        every = [
            PackPlan(half, k_major, vector, panel_rows(row, half, k))
            for half in halves for k_major in (False, True)
        ]  # fmt: skip
        every = [laid_out([x], row, [k], [(x.rows, panels)], 132)[0] for x in every]
        for plan in every:
            yield Candidate(precision, ARCHS[WGMMA_TARGET], plan)
        for one, other in product(every, every):
            if one.k_major > other.k_major and one.cluster == other.cluster:
                yield Candidate(precision, ARCHS[WGMMA_TARGET], one, other)


PACKINGS = Kernels(packings)


@pytest.mark.parametrize("precision", TENSOR)
def test_every_packing(precision: str) -> None:
    row = PRECISIONS[precision]
    for candidate in PACKINGS.of(precision, ARCHS[WGMMA_TARGET]):
        plans = [candidate.plan, *filter(None, [candidate.more])]
        assert_clean(pack_source(row, plans), WGMMA_TARGET, pack_kernel_name(row, plans))


def test_what_holds_a_stream(arch: Arch) -> None:
    assert_clean(HOLD_SOURCE, arch.target, HOLD_KERNEL)


def test_the_split_k_reduction() -> None:
    assert_clean(reduce_source(), WGMMA_TARGET, REDUCE_KERNEL)


HOPPER = arch_for(90)


@pytest.mark.exhaustive
@pytest.mark.parametrize("precision", TENSOR)
def test_squared_magnitudes(precision: str) -> None:
    """The largest tile of each storage: a result is one register less to store."""
    row, sizes, seen = PRECISIONS[precision], GemmSizes(1, 4096, 4096, 4096, power=True), set()
    for k_major in (False, True):
        traits = OperandTraits(True, k_major)
        for choice in gemm_choices(Question(row, sizes, traits, traits), HOPPER, 132):
            plan = choice.wgmma
            if plan is None or (plan.storage, plan.k_major, plan.fused_pack) in seen:
                continue
            seen.add((plan.storage, plan.k_major, plan.fused_pack))
            assert plan.power
            for one in epilogues(precision, plan):
                assert_clean(wgmma_source(row, one), WGMMA_TARGET, wgmma_kernel_name(row, one))
