"""The CPU's butterflies: convolutions in fp32 as the GPU's kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, DftProblem, dft
from argand.device import arch_for
from argand.dft.butterfly import LARGEST_RADIX, ButterflyPlan
from argand.dft.cpu import dft as staged
from argand.dft.cpu_butterfly import butterfly, butterfly_dft
from argand.dft.heuristics import butterflies_for, choose
from argand.dft.method import method_for
from argand.dft.three_kernel import ThreeKernelPlan

from tests.normal import normal
from workflow.accuracy.transform_bounds import butterfly_bound, dft_bound

Array = npt.NDArray[Any]
ROW = PRECISIONS["3xfp16"]
AMPERE = arch_for(80)
PLANS = [
    ButterflyPlan(100, False, (16, 16), 1, 4),
    ButterflyPlan(29, False, (5, 12), 1, 1),
    ButterflyPlan(31, True, (6, 5), 1, 1),
    ButterflyPlan(1009, True, (16, 9, 7), 2, 8),
    ButterflyPlan(1009, False, (10, 12, 20), 2, 8),
    ButterflyPlan(13_001, True, (10, 10, 13, 10), 8, 2),
]


def problem_of(x: Array, *, inverse: bool = False) -> DftProblem:
    return DftProblem(len(x), x.shape[1], inverse, "ortho", ROW)


def error_of(found: Array, exact: Array) -> float:
    rows = np.linalg.norm(found - exact, axis=-1) / np.linalg.norm(exact, axis=-1)
    return float(rows.max())


@pytest.mark.parametrize("size", [*range(1, 33), LARGEST_RADIX])
def test_butterflies_are_transforms(rng: np.random.Generator, size: int) -> None:
    x = normal(rng, size, 50)
    found = np.stack(butterfly(list(x)))
    assert found.dtype == np.complex64
    exact = np.fft.fft(x.astype(complex), axis=0)
    # A few roundings of fp32 for each time that a number is added to others.
    assert np.linalg.norm(found - exact) <= 2.0**-24 * (3 + np.log2(size)) * np.linalg.norm(exact)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.length}-{plan.stages}")
def test_a_plan_is_within_its_bound(
    rng: np.random.Generator, plan: ButterflyPlan, inverse: bool
) -> None:
    x = normal(rng, 5, plan.length)
    x[0, 1:] = 0
    x[1] = 1
    exact = (np.fft.ifft if inverse else np.fft.fft)(x.astype(complex), norm="ortho")
    found = butterfly_dft(problem_of(x, inverse=inverse), x, plan)
    assert error_of(found, exact) <= butterfly_bound(plan)
    assert error_of(found[2:], exact[2:]) < 4e-7


@pytest.mark.parametrize("length", [1009, 2039, 4093, 10_007])
def test_the_cpu_takes_them(rng: np.random.Generator, length: int) -> None:
    plan, x = butterflies_for(length), normal(rng, 3, length)
    assert plan is not None
    found = dft(x, norm="ortho", precision="3xfp16")
    np.testing.assert_array_equal(found, butterfly_dft(problem_of(x), x, plan))
    # In fp32 at every precision, unlike products of stages, and with a smaller bound.
    np.testing.assert_array_equal(found, dft(x, norm="ortho", precision="fp16"))
    method = method_for(length)
    products = staged(problem_of(x), x, method)
    assert (found != products).any()
    assert error_of(found, products.astype(complex)) < 1e-6
    assert dft_bound(ROW, method, "cpu") == dft_bound(ROW, method, "cuda") == butterfly_bound(plan)


def test_others_have_none() -> None:
    for length in (97, 509, 1000, 1024, 12_000, 58 * 59):
        assert butterflies_for(length) is None


@pytest.mark.parametrize("length", [14_009, 57_337, 262_139])
def test_the_cpu_takes_passes(rng: np.random.Generator, length: int) -> None:
    plan, x = butterflies_for(length), normal(rng, 2, length)
    assert isinstance(plan, ThreeKernelPlan)
    for inverse in (False, True):
        exact = (np.fft.ifft if inverse else np.fft.fft)(x.astype(complex), norm="ortho")
        found = dft(x, norm="ortho", inverse=inverse, precision="3xfp16")
        assert found.dtype == np.complex64
        assert error_of(found, exact) <= butterfly_bound(plan)
        assert error_of(found, exact) < 4e-7
    assert dft_bound(ROW, method_for(length), "cpu") == butterfly_bound(plan)
    found = dft(x, precision="3xfp16")
    np.testing.assert_array_equal(found, dft(x, precision="bf16"))
    np.testing.assert_array_equal(found[1:], dft(x[1:], precision="3xfp16"))


def test_a_card_without_room_takes_three_kernels_and_says_so() -> None:
    """10007 needs 20480 numbers at a time in shared memory; sm_80 has 163 KB of it."""
    method = method_for(10_007)
    for name in ("3xfp16", "fp16", "3xtf32"):
        found = choose(method, PRECISIONS[name], AMPERE, wide=False)
        assert isinstance(found.plan, ThreeKernelPlan)
        assert str(found).endswith("in three kernels in fp32")
    for length in (1009, 2039, 4093, 8191):
        assert isinstance(choose(method_for(length), ROW, AMPERE, wide=False).plan, ButterflyPlan)
