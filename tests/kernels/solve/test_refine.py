"""Steps of refinement, by factors that solve as well or as badly as is said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from argand import solve
from argand.runtime.complex_types import UNIT_ROUNDOFF
from argand.solve import scaling
from argand.solve.cpu import CpuLibrary
from argand.solve.refine import TARGET, Solution, refined
from argand.solve.scaling import times_power

from tests.kernels.solve.systems import normal

N = 40
U = UNIT_ROUNDOFF["complex128"]


class Given:
    """Solutions that stand in the place of factors, one after another."""

    precision, as_gesv = "given", False

    def __init__(self, *solutions: Any) -> None:
        self._left: Iterator[Any] = iter(solutions)

    def solve(self, b: Any) -> Any:
        return next(self._left)


def refine(a: Any, b: Any, *solutions: Any) -> Solution:
    norm = float(abs(a).sum(axis=1).max())
    factors: Any = Given(*solutions)
    return refined(a, b, factors, norm=norm, unit_roundoff=U, library=CpuLibrary())


@pytest.fixture
def system(rng: np.random.Generator) -> tuple[Any, Any]:
    return normal(rng, N, N), normal(rng, N, 2)


def test_a_step_that_makes_it_worse_is_not_taken(system: tuple[Any, Any]) -> None:
    """The first solution is accepted, though its error is twice what refinement aims at."""
    a, x = system
    b = a @ x
    norm, off = abs(a).sum(axis=1).max(), np.zeros(x.shape, complex)
    off[3] = 2 * TARGET * U * (norm * abs(x).max(axis=0) + abs(b).max(axis=0)) / abs(a[:, 3]).max()
    found = refine(a, b, x + off, np.full(x.shape, 1e-3))
    np.testing.assert_array_equal(found.x, x + off)
    assert (found.steps, found.backward_error > TARGET * U) == (1, True)


def test_a_small_solution_beside_a_large_one_is_refined(system: tuple[Any, Any]) -> None:
    a, x = system
    x *= [1e-20, 1.0]
    off = np.zeros(x.shape, complex)
    off[:, 0] = 1e-3 * x[:, 0]
    found = refine(a, a @ x, x + off, -off)
    assert found.steps == 1
    np.testing.assert_allclose(found.x, x, rtol=1e-13)


def test_residuals_of_complex64_are_found_by_blocks_of_rows(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = (normal(rng, N, n).astype(np.complex64) for n in (N, 3))
    expected = solve(a, b, precision="7xint8", block=8, details=True)
    monkeypatch.setattr(scaling, "_VALUES", 7 * N)
    found = solve(a, b, precision="7xint8", block=8, details=True)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-6)
    assert found.steps == expected.steps


@pytest.mark.parametrize(("x", "exponent"), [(-1000, 1500), (1000, -1500), (-1074, 2097)])
def test_powers_beyond_the_range_of_one_number(x: int, exponent: int) -> None:
    found = times_power(np.array([complex(2.0**x, -(2.0**x))]), exponent)
    assert found.tolist() == [complex(2.0 ** (x + exponent), -(2.0 ** (x + exponent)))]
    with np.errstate(over="ignore"):
        assert np.isinf(times_power(np.array([1.0 + 0j]), 2097).real)
