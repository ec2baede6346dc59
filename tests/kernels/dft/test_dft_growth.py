"""How errors of folded products grow with the length, summed as tensor cores sum."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.dft.heuristics import own_plan
from argand.dft.legality import wide_fits
from argand.dft.method import LARGEST_DENSE, method_for
from argand.dft.plan import Plan
from argand.dft.truncation import TRUNCATION_BIAS, truncation_bias

from tests.kernels.gemm.folded_sums import ROW, transformed
from tests.kernels.tensor_core_sums import added

Array = npt.NDArray[Any]
HOPPER = arch_for(90)
AMPERE = arch_for(80)
LENGTHS = (17, 31, 67, 97, 127, 131, 149, 199, 251, 307, 359, 401, 449, 509)


def plan_of(length: int, arch: Any) -> Plan:
    method = method_for(length)
    plan = own_plan(method, ROW, arch, wide=wide_fits(method.kind, length, length))
    assert plan is not None
    return plan


@lru_cache(maxsize=64)
def error(length: int, target: str) -> tuple[float, float]:
    """Relative, of many transforms of normal numbers; and what of the result is missing."""
    arch = HOPPER if target == HOPPER.target else AMPERE
    rng = np.random.default_rng(length)
    shape = (max(6, 3000 // length), length, 2)
    x = rng.standard_normal(shape).astype(np.float32).view(np.complex64)[..., 0]
    which, found = transformed(x, plan_of(length, arch))
    exact = np.fft.fft(x.astype(complex))[:, which]
    kept = np.vdot(exact, found) / np.vdot(exact, exact)
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact)), 1 - float(kept.real)


def exponent_of(lengths: tuple[int, ...], target: str) -> float:
    """The p of errors that go as (log n)^p."""
    errors = [error(length, target)[0] for length in lengths]
    return float(np.polyfit(np.log(np.log(lengths)), np.log(errors), 1)[0])


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_errors_grow_no_faster_than_the_logarithm(target: str) -> None:
    assert exponent_of(LENGTHS, target) <= 1
    if target == HOPPER.target:  # of each kind of kernel, too
        assert exponent_of(tuple(n for n in LENGTHS if n < 128), target) <= 1
        assert exponent_of(tuple(n for n in LENGTHS if n > 128), target) <= 1


@pytest.mark.parametrize(
    ("length", "target"),
    [(n, target) for n in (67, 127, 251, 509) for target in ("sm_80", "sm_90a")]
    + [(659, "sm_90a")],
)
def test_compensation_removes_the_bias(length: int, target: str) -> None:
    """Without it an average sum of S k-tiles would lose S / 2 times the bias."""
    slices = -(-(length // 2) // 16)
    assert abs(error(length, target)[1]) < TRUNCATION_BIAS * slices / 4


def test_the_longest_is_far_below_what_is_allowed() -> None:
    assert method_for(659).kind == "dense"
    assert LARGEST_DENSE < 16 * 64
    assert error(659, HOPPER.target)[0] < 2e-7


def test_an_mma_truncates_by_the_bias(rng: np.random.Generator) -> None:
    """Sums that are large beside what is added, of every mantissa, all bits as likely."""
    sums = np.exp2(rng.uniform(0, 1, (1, 1 << 16))).astype(np.float32).astype(float)
    small = np.ldexp(rng.integers(-(2**14), 2**14, (16, 1 << 16)), -30).astype(float)
    exact = sums + small.sum(axis=0)
    lost = (exact - added(sums, np.ones((1, 16)), small)) / exact
    spread = lost.std() / np.sqrt(lost.size)
    # Products that are truncated lose nothing on average: they have both signs.
    assert abs(lost.mean() - TRUNCATION_BIAS) < 5 * spread
    assert truncation_bias(ROW) == TRUNCATION_BIAS
    assert truncation_bias(PRECISIONS["fp16"]) == 0
