"""The kernels of filter banks, without a GPU: they compile without spills, and choose what fits."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from argand import PRECISIONS, ChanneliseProblem
from argand.channelise import plan as plan_module
from argand.channelise.filter_plan import (
    FILTER_THREADS,
    FLOAT64,
    FilterForm,
    filter_chunks,
    filter_form,
    filter_name,
    filter_source,
)
from argand.channelise.plan import (
    COMPONENTS,
    UNITS,
    ChannelisePlan,
    check_plan,
    kernel_name,
    kernel_source,
    plan_channelise,
    twiddle_tables,
    without_spills,
)
from argand.channelise.single_thread_plan import (
    SingleThreadPlan,
    check_single_thread_plan,
    single_thread_name,
    single_thread_plan,
    single_thread_source,
)
from argand.device import ARCHITECTURES, Arch
from argand.runtime.compile.compiler import Resources
from argand.runtime.plan import PlanError

from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import assert_clean

BANKS: list[tuple[int, int, Any, bool]] = [
    (1024, 8, 1, False), (1024, 8, 1, True), (1024, 8, "4/3", False), (4096, 8, 1, False),
    (16, 4, 1, False), (1000, 8, "5/4", False), (1536, 16, 1, False),
]  # fmt: skip
MORE: list[tuple[int, int, Any, bool]] = [
    (2048, 8, 1, False), (2048, 8, "32/27", False), (512, 8, 1, False), (64, 8, 1, False),
    (256, 4, 2, False), (8192, 4, 1, True), (32, 32, 1, False), (1024, 1, 1, False),
    (12, 5, "4/3", False), (64, 4, "4/3", True), (12, 3, 1, False), (130, 6, 1, False),
    (2048, 8, "4/3", False), (1024, 8, 2, True), (256, 16, 1, True),
]  # fmt: skip


def problem(
    channels: int, taps: int, oversampling: Any = 1, real: bool = False, precision: str = "fp32"
) -> ChanneliseProblem:
    fraction = Fraction(oversampling)
    return ChanneliseProblem((), 1 << 22, channels, taps, fraction, real, PRECISIONS[precision])


@pytest.mark.each_value
@pytest.mark.parametrize("component", UNITS)
@pytest.mark.parametrize("bank", BANKS + MORE * EXHAUSTIVE, ids=str)
def test_kernels_compile(arch: Arch, bank: tuple[Any, ...], component: str) -> None:
    plan = plan_channelise(problem(*bank), arch)
    assert plan is not None
    if plan.real and component not in COMPONENTS:
        return  # real samples are their own conjugates
    plan = without_spills(plan, component, arch.target)
    source = kernel_source(plan, component)
    assert_clean(source, arch.target, kernel_name(plan, component))


@pytest.mark.parametrize(("fewest", "chosen"), [(2, 2), (1, 1), (0, 2)])
def test_fewer_blocks_are_tried_until_nothing_spills(
    monkeypatch: pytest.MonkeyPatch, fewest: int, chosen: int
) -> None:
    """A compiler that spills with more than the ``fewest`` blocks, or always."""
    given = replace(PLAN, blocks=2)
    tried = {kernel_source(replace(given, blocks=blocks), "int16"): blocks for blocks in (1, 2)}
    assert len(tried) == 2

    def compiled(source: str, target: str) -> Any:
        spilled = Resources(168, 8 * (tried[source] > fewest), 0, 0, 0)
        return SimpleNamespace(resources=defaultdict(lambda: spilled))

    monkeypatch.setattr(plan_module, "compiled", compiled)
    without_spills.cache_clear()
    assert without_spills(given, "int16", "sm_90a") == replace(given, blocks=chosen)
    without_spills.cache_clear()


@pytest.mark.exhaustive
def test_a_kernel_that_spills_gets_fewer_blocks() -> None:
    """Int8 alone spills with the registers that the most blocks leave."""
    target = ARCHITECTURES[3].target
    plan = plan_channelise(problem(32, 32), ARCHITECTURES[3])
    assert plan is not None
    blocks = {kind: without_spills(plan, kind, target).blocks for kind in ("int8", "int16")}
    assert blocks["int16"] == plan.blocks > blocks["int8"]


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("component", "real", "form"),
    [
        ("int8", False, "sliding"), ("float64", True, "flat"), ("float32", True, "flat"),
        ("conjugate_int16", False, "flat"), ("conjugate_float64", False, "sliding"),
    ]
    if not EXHAUSTIVE
    else [
        *product([*UNITS, FLOAT64, f"conjugate_{FLOAT64}"], (False,), get_args(FilterForm)),
        *product([*COMPONENTS, FLOAT64], (True,), get_args(FilterForm)),
    ],
)  # fmt: skip
def test_filters_compile(arch: Arch, component: str, real: bool, form: FilterForm) -> None:
    source = filter_source(component, real=real, form=form)
    assert_clean(source, arch.target, filter_name(component, real=real, form=form))


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("channels", "taps", "hop", "real", "component"),
    [(8, 5, 8, True, "int16"), (11, 31, 11, False, "float32"), (32, 8, 24, False, "int8"),
     (12, 7, 12, False, "conjugate_int8")]
    + EXHAUSTIVE * [
        (2, 1, 2, False, "float32"), (15, 6, 12, True, "float32"), (26, 32, 26, False, "float32"),
        (64, 31, 48, True, "int8"), (27, 7, 9, False, "int16"), (32, 32, 16, False, "float32"),
    ],
)  # fmt: skip
def test_threads_hold_a_spectrum(
    arch: Arch, channels: int, taps: int, hop: int, real: bool, component: str
) -> None:
    plan = SingleThreadPlan(channels, taps, hop, real)
    check_single_thread_plan(plan, arch)
    source = single_thread_source(plan, component, arch)
    assert_clean(source, arch.target, single_thread_name(plan, component))


def test_few_channels_have_a_spectrum_a_thread() -> None:
    arch = ARCHITECTURES[3]
    assert single_thread_plan(problem(8, 5), arch) == SingleThreadPlan(8, 5, 8, False)
    assert single_thread_plan(problem(8, 5, precision="fp64"), arch) is None
    assert single_thread_plan(problem(1024, 8), arch) is None
    assert single_thread_plan(problem(8, 100_000), arch) is None  # coefficients have no room
    for plan, said in (
        (SingleThreadPlan(1, 4, 1, False), "2 to 32 numbers, got 1"),
        (SingleThreadPlan(34, 4, 34, False), "got 34"),
        (SingleThreadPlan(17, 4, 17, False), "prime factors must be at most 13"),
        (SingleThreadPlan(8, 4, 8, False, spectra=100), "whole warps, 32 to 1024, got 100"),
        (SingleThreadPlan(8, 4, 8, False, spectra=2048), "32 to 1024, got 2048"),
        (SingleThreadPlan(8, 100_000, 8, False), "232448 bytes of shared memory on"),
    ):
        with pytest.raises(PlanError, match=said):
            check_single_thread_plan(plan, arch)


@pytest.mark.each_value
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("channels", [37, 256, 4075])
@pytest.mark.parametrize("oversampling", ["1", "4/3"])
@pytest.mark.parametrize("count", [1, 1000])
def test_every_spectrum_is_filtered_once(
    rows: int, channels: int, oversampling: str, count: int
) -> None:
    fraction = Fraction(oversampling)
    one = ChanneliseProblem((rows,), 1, channels, 8, fraction, False, PRECISIONS["fp32"])
    found = filter_chunks(one, rows, count, 132)
    assert (
        found.columns * found.column_blocks >= channels > found.columns * (found.column_blocks - 1)
    )
    apart = 1 if filter_form(one) == "flat" else one.phases
    assert found.items == rows * apart * found.chunks
    assert found.chunks * found.chunk * apart >= count
    assert (found.chunks - 1) * found.chunk * apart < count
    beside = FILTER_THREADS // found.columns if apart == one.phases else 1
    assert found.blocks // found.column_blocks * beside >= found.items


@pytest.mark.parametrize("bank", BANKS + MORE, ids=str)
def test_plans_fit_every_architecture(bank: tuple[Any, ...]) -> None:
    for arch in ARCHITECTURES:
        plan = plan_channelise(problem(*bank), arch)
        assert plan is not None, (bank, arch.target)
        check_plan(plan, arch)
        assert prod(plan.radices) == plan.points
        first, second, last = plan.radices
        numbers = (
            (first - 1) * plan.columns + (second - 1) * last + plan.real * (plan.points // 2 + 1)
        )
        assert twiddle_tables(plan).shape == (numbers,)


@pytest.mark.parametrize(
    "one",
    [
        problem(1024, 8, precision="fp64"), problem(8192, 8), problem(37, 8), problem(1024, 33),
        problem(15, 3, 1, True), problem(12, 4, "4/3", True), problem(34, 2),
    ],
)  # fmt: skip
def test_others_go_another_way(one: ChanneliseProblem) -> None:
    assert plan_channelise(one, ARCHITECTURES[3]) is None


PLAN = ChannelisePlan(1024, 8, 1, 1, False, (4, 16, 16), 8, 256, 1, 2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"radices": (4, 16, 8)}, "radices .* are not those of 1024 points"),
        ({"radices": (1, 16, 64)}, "radices must be from 1 to 32"),
        ({"radices": (17, 1, 2), "points": 34}, "prime factors up to 13"),
        ({"taps": 9}, "take too many registers"),
        ({"real": True}, "take too many registers"),
        ({"batch": 33}, "batch must be from 1 to 32"),
        ({"threads": 100}, "whole warps"),
        ({"blocks": 5}, "leave too few registers"),
        ({"batch": 16}, "bytes of shared memory each"),
    ],
)
def test_other_plans_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        check_plan(replace(PLAN, **changes), ARCHITECTURES[3])
