"""The kernels of images, without a GPU: they compile without spills, and their blocks fit."""

from __future__ import annotations

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, Arch, Device
from argand.image.check_and_sum_source import CHECK_KERNEL, SUM_KERNEL, check_source, sum_source
from argand.image.few_antennas_plan import (
    MAX_ANTENNAS,
    FewAntennasPlan,
    choose_few_antennas_plan,
    few_antennas_kernel_name,
    few_antennas_source,
)
from argand.image.heuristics import PLAN_OVERRIDE, plan_image
from argand.image.plan import (
    MmaImagePlan,
    check_plan,
    choose_plan,
    image_source,
    kernel_name,
    pack_name,
    pack_source,
    panels_of,
)
from argand.image.problem import ImageProblem
from argand.image.splits import blocks_of_one_split, splits_of
from argand.precision import any_precision
from argand.runtime.plan import PlanError

from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import assert_clean
from tests.kernels.precisions import TENSOR

ON_TENSOR_CORES = [name for name in TENSOR if PRECISIONS[name].operand.bytes > 1]


def test_checks_and_sums_compile(arch: Arch) -> None:
    assert_clean(check_source(), arch.target, CHECK_KERNEL)
    assert_clean(sum_source(), arch.target, SUM_KERNEL)


@pytest.mark.each_value
@pytest.mark.parametrize("name", ON_TENSOR_CORES)
def test_kernels_compile(arch: Arch, name: str) -> None:
    row = PRECISIONS[name]
    assert_clean(pack_source(row), arch.target, pack_name(row))
    plan = choose_plan(row, arch)
    assert_clean(image_source(plan, row), arch.target, kernel_name(plan, row))


@pytest.mark.parametrize("name", ON_TENSOR_CORES)
def test_plans_fit_every_architecture(name: str) -> None:
    for arch in ARCHITECTURES:
        check_plan(choose_plan(PRECISIONS[name], arch), PRECISIONS[name], arch)


@pytest.mark.parametrize(
    ("plan", "name", "said"),
    [
        (MmaImagePlan(48, 1), "tf32", "directions must be 32, 64 or 128"),
        (MmaImagePlan(128, 4), "fp16", "too few registers"),
        (MmaImagePlan(128, 2), "3xtf32", "bytes of shared memory"),
        (MmaImagePlan(64, 1), "fp32", "tensor cores have no operands of fp32"),
        (MmaImagePlan(64, 1), "7xint8", "an MMA of int8 has 32: use operands of 2 bytes"),
    ],
)
def test_other_plans_are_refused(plan: MmaImagePlan, name: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        check_plan(plan, any_precision(name), ARCHITECTURES[0])


@pytest.mark.each_value
@pytest.mark.parametrize("antennas", range(1, MAX_ANTENNAS + 1) if EXHAUSTIVE else (1, 12, 24))
@pytest.mark.parametrize("images", (1, 2, 9) if EXHAUSTIVE else (9,))
def test_kernels_of_few_antennas_compile(arch: Arch, antennas: int, images: int) -> None:
    plan = choose_few_antennas_plan(antennas, images)
    assert plan is not None
    assert_clean(few_antennas_source(plan), arch.target, few_antennas_kernel_name(plan))


def test_few_antennas_share_weights_among_images() -> None:
    assert choose_few_antennas_plan(4, 1) == FewAntennasPlan(4, 1)
    assert choose_few_antennas_plan(4, 3) == FewAntennasPlan(4, 4)
    assert choose_few_antennas_plan(24, 3) == FewAntennasPlan(24, 2)
    assert choose_few_antennas_plan(MAX_ANTENNAS + 1, 1) is None


@pytest.mark.parametrize(
    ("antennas", "precision", "kind"),
    [
        (24, "fp32", FewAntennasPlan), (24, "fp16", FewAntennasPlan), (25, "fp16", MmaImagePlan),
        (25, "fp32", type(None)), (4, "fp64", type(None)),
    ],
)  # fmt: skip
def test_antennas_and_precision_choose_the_kernel(
    antennas: int, precision: str, kind: type[object]
) -> None:
    device = Device("cuda", "a card", 0, ARCHITECTURES[0], 100)
    problem = ImageProblem((2,), 3, antennas, 500, PRECISIONS[precision], 1)
    assert type(plan_image(problem, device)) is kind
    with PLAN_OVERRIDE.use(FewAntennasPlan(23, 1)):
        if kind is type(None) or precision == "fp32":
            assert type(plan_image(problem, device)) is kind
            return
        with pytest.raises(PlanError, match="has other antennas than an image of"):
            plan_image(problem, device)


@pytest.mark.each_value
@pytest.mark.parametrize("antennas", [40, 64, 229, 512])
@pytest.mark.parametrize("directions", [64, 1377, 8225, 98042])
@pytest.mark.parametrize("channels", [1, 7, 64])
def test_splits_fill_multiprocessors(antennas: int, directions: int, channels: int) -> None:
    """There are no more than pairs of panels, and as many as few directions need."""
    problem = ImageProblem((), channels, antennas, directions, PRECISIONS["3xtf32"], 1)
    plan = choose_plan(problem.precision, ARCHITECTURES[0])
    panels = panels_of(antennas)
    pairs = channels * panels * (panels + 1) // 2
    blocks, splits = blocks_of_one_split(problem, plan), splits_of(problem, plan, 132)
    assert 1 <= splits <= pairs
    assert blocks * splits >= min(blocks * pairs // 2, 100)
