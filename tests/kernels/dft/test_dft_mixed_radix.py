"""Mixed radices without a GPU: stages as the kernel runs them, candidates, legality, the choice."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS
from argand.device import Device, arch_for
from argand.dft.heuristics import choose, own_plan
from argand.dft.legality import check_dft_plan
from argand.dft.library_choice import LibraryKernels
from argand.dft.method import method_for
from argand.dft.mixed_radix import MixedRadixPlan, mixed_radix_table
from argand.dft.mixed_radix_heuristics import mixed_radix_plans, mixed_radix_time
from argand.dft.plan_words import plan_in, plan_words
from argand.runtime.plan import is_legal

from workflow.accuracy.transform_bounds import butterfly_bound

HOPPER = arch_for(90)
ROW = PRECISIONS["3xfp16"]
PLANS = (
    MixedRadixPlan((14, 20), 3, 2), MixedRadixPlan((16, 16), 1, 1), MixedRadixPlan((9, 37), 2, 3),
    MixedRadixPlan((8, 9, 10), 2, 3), MixedRadixPlan((16, 4, 16), 1, 2),
    MixedRadixPlan((4, 6, 5, 7), 2, 5),
)  # fmt: skip
Array = npt.NDArray[Any]


def staged(plan: MixedRadixPlan, x: Array) -> Array:
    """A transform by the plan's table, in a block's memory by its pitches, in fp64."""
    radices, stages = plan.radices, len(plan.radices)
    words, shape = mixed_radix_table(radices).astype(complex), list(radices)
    place = np.zeros((1,) * stages, np.int64)
    for stage, (radix, pitch) in enumerate(zip(radices, plan.pitches, strict=True)):
        place = place + (np.arange(radix) * pitch).reshape(
            [-1 if i == stage else 1 for i in range(stages)]
        )
    assert len(np.unique(place)) == plan.length
    assert 8 * (place.max() + 1) * plan.transforms <= plan.shared_bytes(ROW)
    memory = np.full(place.max() + 1, np.nan, complex)
    memory[place] = x.reshape(shape)
    for stage, radix in enumerate(radices):
        memory[place] = np.fft.fft(memory[place], axis=stage)
        rest = prod(radices[stage + 1 :])
        if stage + 1 < stages:
            table, words = words[: radix * rest], words[radix * rest :]
            memory[place] *= table.reshape(radix, *radices[stage + 1 :])
    assert not len(words) or stages == 1
    return memory[place].transpose(range(stages)[::-1]).ravel()


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_tables_and_pitches_make_a_transform(
    rng: np.random.Generator, plan: MixedRadixPlan
) -> None:
    x = rng.standard_normal(plan.length) + 1j * rng.standard_normal(plan.length)
    exact = np.fft.fft(x)
    assert np.linalg.norm(staged(plan, x) - exact) < 1e-6 * np.linalg.norm(exact)
    assert plan_in(plan_words(plan)) == plan
    assert 1e-7 < butterfly_bound(plan) < 2e-5


@pytest.mark.parametrize("length", [130, 280, 434, 999, 1024, 3249, 5005, 8281, 12_000, 25_080])
def test_candidates_are_legal_and_in_order(length: int) -> None:
    plans = list(mixed_radix_plans(length))
    assert plans
    for plan in plans:
        assert plan.length == length
        assert is_legal(check_dft_plan, plan, ROW, HOPPER)
    times = [mixed_radix_time(plan) for plan in plans]
    assert times == sorted(times)
    assert 1 < times[0] < 2
    h100 = Device("cuda", "H100", memory_rate=3.352e12).relative_memory
    assert mixed_radix_time(plans[0], h100) > 1.1 * times[0]


@pytest.mark.parametrize("length", [128, 41 * 8, 131, 37 * 37 * 37, 1 << 15])
def test_lengths_without_a_radix_for_each_factor_have_none(length: int) -> None:
    """Dense lengths, primes above 37, and more numbers than a block holds."""
    assert not list(mixed_radix_plans(length))


@pytest.mark.parametrize(
    ("length", "measured"),
    [(250, 1.10), (280, 1.09), (264, 1.03), (406, 1.14), (594, 1.09), (1024, 1.09), (3249, 1.23),
     (3757, 1.23), (5005, 1.45), (8281, 1.40), (12_000, 1.28), (13_800, 1.49), (21_632, 1.55)],
)  # fmt: skip
def test_times_of_mixed_radices(length: int, measured: float) -> None:
    """Over a copy of the numbers: of the fastest plan that was measured on an H200."""
    plan = own_plan(method_for(length), ROW, HOPPER, wide=False, full=True)
    assert isinstance(plan, MixedRadixPlan)
    assert mixed_radix_time(plan) == pytest.approx(measured, rel=0.15)


def test_cufft_keeps_what_its_kernels_are_fast_at() -> None:
    method = method_for(1024)
    assert choose(method, ROW, HOPPER, wide=False, full=True).needs_library_kernels
    for blocks, ours in ((1, True), (16, False)):
        kernels = LibraryKernels(several=False, numbers=32, blocks=blocks)
        found = choose(method, ROW, HOPPER, wide=False, full=True, library=kernels)
        assert isinstance(found.plan, MixedRadixPlan) == ours
        few = choose(method, ROW, HOPPER, wide=False, library=kernels)
        assert not isinstance(few.plan, MixedRadixPlan)


@pytest.mark.parametrize(
    ("length", "numbers", "blocks", "ours"),
    [(720, 6, 8, True), (504, 7, 13, True), (1000, 10, 8, False), (1000, 5, 8, True),
     (343, 7, 3, False), (343, 5, 3, True), (1000, 10, 1, True), (486, 3, 10, True),
     (728, 26, 20, False), (186, 31, 20, True), (2880, 30, 5, True)],
)  # fmt: skip
def test_kernels_near_a_copys_rate_are_left_to_cufft(
    length: int, numbers: int, blocks: int, ours: bool
) -> None:
    """cuFFT keeps lengths of several blocks and 9 to 28 numbers a thread, or of a single radix."""
    kernels = LibraryKernels(several=False, numbers=numbers, blocks=blocks)
    found = choose(method_for(length), ROW, HOPPER, wide=False, full=True, library=kernels)
    assert isinstance(found.plan, MixedRadixPlan) == ours
