"""Transforms are assessed by the bound of what ran, whatever precision was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.dft.heuristics import own_plan
from argand.dft.method import method_for
from argand.dft.plan import Plan
from argand.dft.plan_words import plan_words

from workflow.accuracy.references import spectrum_reference
from workflow.accuracy.transform_bounds import butterfly_bound, dft_bound, plan_bound
from workflow.spectra.transforms import assess_transform

HOPPER = arch_for(90)


def best(length: int, precision: str = "3xfp16", *, wide: bool = False) -> Plan:
    plan = own_plan(method_for(length), PRECISIONS[precision], HOPPER, wide=wide)
    assert plan is not None
    return plan


@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16", "3xfp16"])
@pytest.mark.parametrize(
    ("plan", "length", "coarse"),
    [
        (None, 1000, False),  # cuFFT
        (best(1009), 1009, False),
        (best(16_384, wide=True), 16_384, False),
        (best(65_536, wide=True), 65_536, False),
        (best(14_009), 14_009, False),
        (best(97, "tf32"), 97, True),
        (best(58 * 59, "tf32"), 58 * 59, True),
        (best(4 * 41, "tf32"), 4 * 41, True),  # which butterflies convolve for at two terms
    ],
    ids=[
        "cufft", "butterfly", "single_cta", "cluster", "three_kernel", "dense", "two_factor",
        "two_factor_or_butterfly",
    ],
)  # fmt: skip
def test_what_ran_decides(
    rng: np.random.Generator, plan: Plan | None, length: int, coarse: bool, precision: str
) -> None:
    """A result off by 1e-4 is a product of tf32's, fp16's or bf16's, and nothing of fp32's."""
    x = (rng.standard_normal((2, length)) + 1j * rng.standard_normal((2, length))).astype(
        np.complex64
    )
    reference = spectrum_reference(x.astype(complex))
    exact = np.fft.fft(x.astype(complex))
    noise = rng.standard_normal(exact.shape) + 1j * rng.standard_normal(exact.shape)
    noise *= np.linalg.norm(exact) / np.linalg.norm(noise)
    row, words = PRECISIONS[precision], plan_words(plan)
    for error, right in ((2e-7, True), (1e-4, coarse and precision != "3xfp16")):
        found = (exact + error * noise).astype(np.complex64)
        accuracy = assess_transform(reference, found, row, backend="cuda", ran=words)
        assert accuracy.verified == right, (error, accuracy.bound)
        assert accuracy.worst_bound == pytest.approx(plan_bound(plan, row, length), rel=1e-6)
        assert accuracy.bound < accuracy.worst_bound


def test_the_cpu_and_a_library_are_verified_as_before(rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, 60)) + 0j
    reference, exact = spectrum_reference(x), np.fft.fft(x)
    row = PRECISIONS["tf32"]
    found = assess_transform(reference, exact.astype(np.complex64), row, backend="cpu")
    assert found.worst_bound == pytest.approx(dft_bound(row, method_for(60), "cpu"), rel=1e-6)
    found = assess_transform(reference, exact, PRECISIONS["fp64"], backend="cpu")
    assert found.verified
    assert found.bound < 1e-13


def test_bounds_of_butterflies() -> None:
    bounds = [butterfly_bound(best(n)) for n in (1018, 8186, 57_337, 1_000_003)]  # type: ignore[arg-type]
    assert 1e-6 < bounds[0] < bounds[-1] < 4e-5
    assert butterfly_bound(best(65_536, wide=True)) < 1e-5  # type: ignore[arg-type]
