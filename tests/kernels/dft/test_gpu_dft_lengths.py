"""Our GPU transforms of awkward lengths, of large prime factors, against fp64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, dft, tune_dft
from argand.device import Device
from argand.dft import tuned
from argand.dft.butterfly import ButterflyPlan
from argand.dft.candidates import candidates, ordered
from argand.dft.library_choice import LIBRARY_PRIME
from argand.dft.method import method_for, prime_factors
from argand.dft.plan import Plan, dft_source
from argand.dft.problem import DftProblem
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.two_pass import TwoPassPlan
from argand.runtime.compile.compiler import compile_all
from argand.runtime.plans import tuned_plans

from tests.normal import normal
from workflow.accuracy.transform_bounds import butterfly_bound

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]
ROW = PRECISIONS["3xfp16"]
BUTTERFLIES = (254, 262, 508, 1018, 2018, 3022, 3199, 8186, 13_001)
MIXED = (130, 280, 434, 999, 3249, 5005, 8281, 12_000, 25_080)
PASSES = (21_632, 16_432, 28_543, 33_271, 47_190, 65_536, 214_200, 923_521)
KERNELS = (9001, 14_009, 16_382, 20_011, 57_337, 65_537, 100_003, 262_139, 524_287, 1_000_003)


def plans(gpu: Device, length: int, kind: str, most: int) -> list[Plan]:
    """The best plan of a kind and an even choice of the others, compiled."""
    arch = gpu.require_arch()
    every = candidates(method_for(length), ROW, arch, wide=False)
    found = ordered((plan for plan in every if plan.kind == kind), ROW)
    found = found[:: -(-len(found) // most)]
    compile_all((dft_source(plan, ROW), arch.target) for plan in found)
    return found


def check(cp: Any, x: Array, plan: Any, *, inverse: bool = False, norm: str = "backward") -> Array:
    """Every row within its bound and 1e-6, and every element written."""
    from argand.dft.gpu import PLAN_OVERRIDE

    out = cp.full(x.shape, np.nan, np.complex64)
    with PLAN_OVERRIDE.use(plan):
        assert dft(cp.asarray(x), out=out, inverse=inverse, norm=norm) is out
    found = out.get()
    expected = (np.fft.ifft if inverse else np.fft.fft)(x.astype(complex), norm=norm)
    assert np.isfinite(found).all()
    size = np.linalg.norm(expected, axis=-1)
    error = np.linalg.norm(found - expected, axis=-1)
    assert (error <= min(1e-6, butterfly_bound(plan)) * size).all()
    return found


@pytest.mark.parametrize("length", BUTTERFLIES)
def test_convolutions_of_composite_lengths(
    cp: Any, gpu: Device, rng: np.random.Generator, length: int
) -> None:
    for plan in plans(gpu, length, "butterfly", 3):
        check(cp, normal(rng, 37, length), plan)
        check(cp, normal(rng, 3, length), plan, inverse=True)


@pytest.mark.parametrize("length", [254, 1009])
def test_convolutions_of_more_rows_than_the_card_has_at_once(
    cp: Any, gpu: Device, rng: np.random.Generator, length: int
) -> None:
    """The last round has a row of one block, or of every block and of one of them another."""
    (plan,) = plans(gpu, length, "butterfly", 1)
    assert isinstance(plan, ButterflyPlan)
    assert plan.groups > 1
    for last in (1, gpu.sm_count + 1):
        check(cp, normal(rng, gpu.sm_count * plan.groups + last, length), plan)


@pytest.mark.parametrize("length", MIXED)
def test_mixed_radices(cp: Any, gpu: Device, rng: np.random.Generator, length: int) -> None:
    for plan in plans(gpu, length, "mixed_radix", 3):
        x = normal(rng, 37, length)
        x[0, 1:] = 0
        check(cp, x, plan)
        for norm in ("backward", "ortho", "forward"):
            check(cp, x[:3], plan, inverse=True, norm=norm)


def check_in_place(cp: Any, x: Array, whole: Array) -> None:
    """Transform rows inside a longer array in place: their results, and nothing beside them."""
    count, length = x.shape
    given = cp.full((count, length + 3), np.nan, np.complex64)
    rows = given[:, 1 : length + 1]
    rows[...] = cp.asarray(x)
    assert dft(rows, out=rows) is rows
    np.testing.assert_array_equal(rows.get(), whole)
    assert cp.isnan(given[:, :1]).all()
    assert cp.isnan(given[:, length + 1 :]).all()


@pytest.mark.parametrize("length", [280, 3249])
def test_mixed_radices_in_place_and_of_strides(
    cp: Any, gpu: Device, rng: np.random.Generator, length: int
) -> None:
    from argand.dft.gpu import PLAN_OVERRIDE

    (plan,) = plans(gpu, length, "mixed_radix", 1)
    x = normal(rng, 11, length)
    whole = check(cp, x, plan)
    with PLAN_OVERRIDE.use(plan):
        check_in_place(cp, x, whole)
        # A transform does not depend on its neighbours, and a power of two changes nothing.
        x[2, 5], x[5, -1] = np.nan, np.inf
        found = dft(cp.asarray(x)).get()
        large = dft(cp.asarray(np.ldexp(x[6:].view(np.float32), 90).view(np.complex64))).get()
    others = [0, 1, 3, 4, 6, 7, 8, 9, 10]
    np.testing.assert_array_equal(found[others], whole[others])
    assert not np.isfinite(found[[2, 5]]).any()
    scaled = np.ldexp(whole[6:].view(np.float32), 90).view(np.complex64)
    np.testing.assert_array_equal(large, scaled)


@pytest.mark.parametrize(
    ("kind", "most", "length"),
    [("three_kernel", 4, x) for x in KERNELS] + [("two_pass", 3, x) for x in PASSES],
)
def test_several_kernels(
    cp: Any, gpu: Device, rng: np.random.Generator, kind: str, most: int, length: int
) -> None:
    for plan in plans(gpu, length, kind, most):
        x = normal(rng, 5, length)
        x[0, 1:] = 0
        check(cp, x, plan)
        for norm in ("backward", "ortho", "forward"):
            check(cp, x[:2], plan, inverse=True, norm=norm)


@pytest.mark.parametrize(("length", "kind"), [(14_009, "three_kernel"), (16_432, "two_pass")])
def test_several_kernels_in_pieces_in_place_and_of_strides(
    cp: Any,
    gpu: Device,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    length: int,
    kind: str,
) -> None:
    from argand.dft import multi_kernel_launch
    from argand.dft.gpu import PLAN_OVERRIDE

    (plan,) = plans(gpu, length, kind, 1)
    assert isinstance(plan, ThreeKernelPlan | TwoPassPlan)
    x = normal(rng, 7, length)
    whole = check(cp, x, plan)
    monkeypatch.setattr(multi_kernel_launch, "WORKSPACE_BYTES", 3 * 8 * plan.size)
    with PLAN_OVERRIDE.use(plan):
        check_in_place(cp, x, whole)
        # A transform depends neither on its neighbours nor on its piece.
        x[2, 5], x[5, -1] = np.nan, np.inf
        found = dft(cp.asarray(x)).get()
    np.testing.assert_array_equal(found[[0, 1, 3, 4, 6]], whole[[0, 1, 3, 4, 6]])
    assert not np.isfinite(found[[2, 5]]).any()


@pytest.mark.parametrize(("length", "kind"), [(14_009, "three_kernel"), (16_432, "two_pass")])
def test_several_kernels_have_the_range_of_fp32(
    cp: Any, gpu: Device, rng: np.random.Generator, length: int, kind: str
) -> None:
    """Powers of two change nothing while what is between stays within it."""
    (plan,) = plans(gpu, length, kind, 1)
    x = normal(rng, 2, length)
    whole = check(cp, x, plan)
    for power in (-90, 90):
        found = check(cp, np.ldexp(x.view(np.float32), power).view(np.complex64), plan)
        np.testing.assert_array_equal(
            found, np.ldexp(whole.view(np.float32), power).view(np.complex64)
        )


def test_any_length(cp: Any, gpu: Device, rng: np.random.Generator) -> None:
    """Random lengths, by the plan that is chosen."""
    lengths = [*map(int, rng.integers(129, 40_000, 30)), *map(int, rng.integers(129, 2000, 10))]
    arch, jobs = gpu.require_arch(), []
    for length in lengths:
        problem = DftProblem(3, length, False, "backward", ROW)
        plan = tuned.chosen(problem, gpu).plan
        if plan is None:
            assert max(prime_factors(length)) <= LIBRARY_PRIME
        else:
            jobs.append((dft_source(plan, ROW), arch.target))
    compile_all(jobs)
    for length in lengths:
        x = normal(rng, 3, length)
        out = cp.full(x.shape, np.nan, np.complex64)
        dft(cp.asarray(x), out=out)
        expected = np.fft.fft(x.astype(complex))
        error = np.linalg.norm(out.get() - expected) / np.linalg.norm(expected)
        assert error <= 1e-6, length


def test_the_fastest_is_kept_and_taken(
    cp: Any, rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argand.dft.gpu import plan_of

    monkeypatch.setattr(tuned_plans, "cache_folder", lambda: tmp_path)
    tuned.TABLE.changed()
    x = normal(rng, 64, 1018)
    try:
        found = tune_dft(64, 1018, most=2)
        assert [time for _, time in found] == sorted(time for _, time in found)
        assert None in [plan for plan, _ in found]
        choice = plan_of(cp.asarray(x))
        assert choice.plan == found[0][0]
        assert "measured on this device" in choice.why
        expected = np.fft.fft(x.astype(complex))
        error = np.linalg.norm(dft(cp.asarray(x)).get() - expected) / np.linalg.norm(expected)
        assert error <= 1e-6
    finally:
        tuned.TABLE.changed()
