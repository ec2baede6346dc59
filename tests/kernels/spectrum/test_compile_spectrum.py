"""The kernels of spectral estimates, without a GPU: they compile without spills; what fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from argand import PRECISIONS, SpectrumProblem
from argand.channelise.plan import COMPONENTS, UNITS
from argand.device import ARCHITECTURES, Arch
from argand.runtime.plan import PlanError
from argand.spectrum.plan import (
    PARTS,
    SAMPLES,
    TERMS,
    SpectrumPlan,
    check_plan,
    kernel_name,
    kernel_source,
    plan_spectrum,
    sum_name,
    sum_source,
    trend_name,
    trend_source,
    window_name,
    window_source,
    without_spills,
)
from argand.spectrum.problem import spectrum_problem

from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import assert_clean

SPECTRA: list[tuple[int, int, bool]] = [
    (1024, 1, False), (1024, 5000, True), (256, 3, True), (1000, 1000, True),
]  # fmt: skip
"""Length, segments of a group, and whether samples are real."""
MORE: list[tuple[int, int, bool]] = [
    (8192, 1000, True),
    (1024, 1, True), (1024, 100, False), (4096, 1000, False), (4096, 1, False), (2048, 70, False),
    (2, 1, False), (4, 50, True), (16, 1000, False), (64, 12, False), (130, 50, False),
    (400, 3, True), (1536, 1000, False), (8192, 1, True), (2048, 50, True), (4000, 1000, False),
    (3000, 1, False), (64, 1, True), (256, 1000, True),
]  # fmt: skip


def problem(
    length: int, average: int, real: bool, precision: str = "fp32", detrend: str | None = None
) -> SpectrumProblem:
    return spectrum_problem(
        (1 << 24,), length=length, overlap=None, average=average, real=real, onesided=None,
        precision=PRECISIONS[precision], detrend=detrend,
    )  # fmt: skip


@pytest.mark.each_value
@pytest.mark.parametrize("component", UNITS)
@pytest.mark.parametrize("one", SPECTRA + MORE * EXHAUSTIVE, ids=str)
def test_kernels_compile(arch: Arch, one: tuple[int, int, bool], component: str) -> None:
    if one[2] and component not in COMPONENTS:
        return  # real samples are their own conjugates
    detrend = "linear" if (one[0] + len(component)) % 3 == 0 else None
    plan = plan_spectrum(problem(*one, detrend=detrend), arch)
    assert plan is not None
    for aligned in (True, False) if EXHAUSTIVE and one[2] else (component != "int8",):
        one_plan = without_spills(plan, component, arch.target, aligned=aligned)
        source = kernel_source(one_plan, component, aligned=aligned)
        assert_clean(source, arch.target, kernel_name(one_plan, component, aligned=aligned))


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", SAMPLES)
def test_windows_compile(arch: Arch, dtype: str) -> None:
    assert_clean(window_source(dtype), arch.target, window_name(dtype))


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", PARTS)
def test_trends_compile(arch: Arch, dtype: str) -> None:
    real = dtype in ("float32", "int16")
    assert_clean(trend_source(dtype, real=real), arch.target, trend_name(dtype, real=real))


@pytest.mark.each_value
@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("result", ["float32", "float64"])
def test_sums_compile(arch: Arch, term: str, result: str) -> None:
    assert_clean(sum_source(term, result), arch.target, sum_name(term, result))


@pytest.mark.parametrize("one", SPECTRA + MORE, ids=str)
def test_plans_fit_every_architecture(one: tuple[int, int, bool]) -> None:
    for arch in ARCHITECTURES:
        plan = plan_spectrum(problem(*one), arch)
        assert plan is not None, (one, arch.target)
        check_plan(plan, arch)
        batch, average = plan.transforms.batch, one[1]
        assert plan.summed == (average if average <= batch else 0)
        if not plan.summed:  # the last batch of a group is nearly as full as the others
            assert -average % batch < -(-average // batch)


@pytest.mark.parametrize(
    "one",
    [
        problem(1024, 1, False, "fp64"), problem(37, 1, False), problem(1, 1, False),
        problem(8192, 1, False), problem(15, 1, True), problem(16384, 1, True),
    ],
    ids=str,
)  # fmt: skip
def test_others_go_another_way(one: SpectrumProblem) -> None:
    assert plan_spectrum(one, ARCHITECTURES[3]) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"summed": 3}, "a batch of 8 segments has no whole groups of 3"),
        ({"summed": -1}, "no whole groups of -1"),
        ({"taps": 2}, "1 tap and 1 phase, got 2 and 1"),
        ({"batch": 33}, "batch must be from 1 to 32"),
    ],
)
def test_other_plans_are_refused(changes: dict[str, Any], said: str) -> None:
    plan = plan_spectrum(problem(1024, 8, False), ARCHITECTURES[3])
    assert isinstance(plan, SpectrumPlan)
    if "summed" in changes:
        wrong = replace(plan, **changes)
    else:
        wrong = replace(plan, transforms=replace(plan.transforms, **changes))
    with pytest.raises(PlanError, match=said):
        check_plan(wrong, ARCHITECTURES[3])
