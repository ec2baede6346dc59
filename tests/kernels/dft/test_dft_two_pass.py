"""Two-pass transforms without a GPU: tables used as the kernels use them, candidates, legality."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, dft
from argand.device import arch_for
from argand.dft.cpu_two_pass import two_pass_dft
from argand.dft.heuristics import butterflies_for
from argand.dft.legality import check_dft_plan
from argand.dft.method import method_for
from argand.dft.plan import kernel_names
from argand.dft.plan_words import plan_in, plan_words
from argand.dft.problem import DftProblem
from argand.dft.two_pass import PASSES, TwoPassPlan, pairs_of, prime_roots, two_pass_tables
from argand.dft.two_pass_heuristics import two_pass_plans, two_pass_time
from argand.runtime.plan import is_legal

from workflow.accuracy.transform_bounds import butterfly_bound, dft_bound

HOPPER = arch_for(90)
ROW = PRECISIONS["3xfp16"]
PLAN = TwoPassPlan(16_432, (8, 13), (2, 79), (16, 16), (7, 3))
SMALL = (
    PLAN,
    TwoPassPlan(912, (4, 6), (2, 19), (16, 32), (2, 3)),
    TwoPassPlan(3657, (3, 53), (1, 23), (32, 16), (2, 3)),
    TwoPassPlan(252, (1, 7), (9, 4), (16, 16), (4, 1)),
)
Array = npt.NDArray[Any]


def passed(plan: TwoPassPlan, x: Array) -> Array:
    """A transform by the plan's tables, kernel by kernel, in fp64."""
    (a, b), (c, d) = plan.columns, plan.lines
    columns, lines = a * b, c * d
    words = two_pass_tables(plan)["twiddles"].astype(complex)
    inner, bases, steps, within = np.split(words, np.cumsum([columns, a * lines, b * lines]))
    work = np.fft.fft(x.reshape(a, b, lines), axis=0) * inner.reshape(a, b, 1)
    work = np.fft.fft(work, axis=1) * bases.reshape(a, 1, lines) * steps.reshape(1, b, lines)
    # Number k_A + A k_B of a column is that line of the workspace.
    work = work.transpose(1, 0, 2).reshape(columns, c, d)
    work = np.fft.fft(np.fft.fft(work, axis=1) * within.reshape(c, d), axis=2)
    return work.transpose(2, 1, 0).ravel()


@pytest.mark.parametrize("plan", SMALL, ids=str)
def test_tables_make_a_transform(rng: np.random.Generator, plan: TwoPassPlan) -> None:
    x = rng.standard_normal(plan.length) + 1j * rng.standard_normal(plan.length)
    exact = np.fft.fft(x)
    assert np.linalg.norm(passed(plan, x) - exact) < 1e-6 * np.linalg.norm(exact)
    assert all(table.flags.c_contiguous for table in two_pass_tables(plan).values())


@pytest.mark.parametrize("prime", [17, 37, 79, 127])
def test_shares_of_roots_make_a_prime(rng: np.random.Generator, prime: int) -> None:
    x = rng.standard_normal(prime) + 1j * rng.standard_normal(prime)
    half, table = prime // 2, prime_roots(prime)
    assert table.shape[1] % pairs_of(prime) == 0
    assert not table[:, half:].any()
    even, odd = x[1 : half + 1] + x[:half:-1], x[1 : half + 1] - x[:half:-1]
    p, q = x[0] + even @ table.real[:, :half], odd @ table.imag[:, :half]
    found = np.concatenate([[x.sum()], p - 1j * q, (p + 1j * q)[::-1]])
    np.testing.assert_allclose(found, np.fft.fft(x), atol=2e-5)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("plan", SMALL, ids=str)
def test_the_cpu_computes_a_plan(
    rng: np.random.Generator, plan: TwoPassPlan, inverse: bool
) -> None:
    x = rng.standard_normal((3, plan.length, 2)).astype(np.float32).view(np.complex64)[..., 0]
    x[0, 1:] = 0
    exact = (np.fft.ifft if inverse else np.fft.fft)(x.astype(complex), norm="ortho")
    found = two_pass_dft(DftProblem(3, plan.length, inverse, "ortho", ROW), x, plan)
    assert found.dtype == np.complex64
    error = np.linalg.norm(found - exact, axis=-1) / np.linalg.norm(exact, axis=-1)
    assert (error <= min(4e-7, butterfly_bound(plan))).all()


def test_the_cpu_takes_the_plan_of_a_length(rng: np.random.Generator) -> None:
    plan = butterflies_for(28_543)
    assert isinstance(plan, TwoPassPlan)
    x = rng.standard_normal((2, 28_543)).astype(np.complex64)
    found = dft(x, precision="3xfp16")
    np.testing.assert_array_equal(found, dft(x, precision="bf16"))
    problem = DftProblem(2, 28_543, False, "backward", ROW)
    np.testing.assert_array_equal(found, two_pass_dft(problem, x, plan))
    assert dft_bound(ROW, method_for(28_543), "cpu") == butterfly_bound(plan)


def test_grids_cover_every_line_and_column() -> None:
    assert [PLAN.grid_blocks(role, 3) for role in PASSES] == [3 * 10, 3 * 7]
    assert [PLAN.kernel_threads(role) for role in PASSES] == [7 * 32, 3 * 32]
    columns, lines = (PLAN.kernel_shared_bytes(role, ROW) for role in PASSES)
    assert (columns, lines) == (104 * 16 * 8, 158 * 17 * 8)
    assert PLAN.size == 104 * 160
    assert len(set(kernel_names(PLAN, ROW))) == 2
    assert plan_in(plan_words(PLAN)) == PLAN


@pytest.mark.parametrize("length", [16_432, 33_271, 47_190, 65_536, 214_200, 1 << 20])
def test_candidates_are_legal_and_in_order(length: int) -> None:
    plans = list(two_pass_plans(length))
    assert plans
    for plan in plans:
        assert plan.length == length == prod(plan.columns) * prod(plan.lines)
        assert is_legal(check_dft_plan, plan, ROW, HOPPER)
    times = [two_pass_time(plan) for plan in plans]
    assert times == sorted(times)
    assert times[0] > 2


@pytest.mark.parametrize("length", [12_000, 2 * 8191, 131 * 128, 41 * 43 * 47, 1 << 24])
def test_lengths_without_a_stage_for_each_factor_have_none(length: int) -> None:
    """Short ones, primes above 127, three large primes, and more numbers than two blocks hold."""
    assert not list(two_pass_plans(length))
