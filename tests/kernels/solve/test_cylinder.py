"""Waves on a conducting cylinder: solutions of a dense system against the Mie series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import solve

from benchmarks.cylinder import incident, main, matrix, mie_series
from tests.kernels.solve.systems import bound

KA, POINTS, COARSE = 20.0, 200, 100
DIRECTIONS = np.array([0.0, 1.0, 2.5])


def allowed(a: Any, x: Any) -> float:
    """The largest error that the backward errors of x and of the matrix leave.

    Arguments of functions reach 2 ka = 40, and an error of u in them moves an entry by 40 u; the
    errors of SciPy's functions and of the other operations are less than 60 u.
    """
    off = bound(len(a), "complex128") + 100 * 2.0**-53
    return float(2 * np.linalg.cond(a, np.inf) * off * np.abs(x).max())


@pytest.mark.parametrize("precision", [None, "15xint8", "9xint8"])
def test_current_is_that_of_the_mie_series(precision: str | None) -> None:
    a, b = matrix(KA, POINTS), incident(KA, POINTS, DIRECTIONS)
    found = solve(a, b, precision=precision, block=64)
    exact = mie_series(KA, POINTS, DIRECTIONS)
    assert np.abs(found - exact).max() <= allowed(a, exact)


def test_too_few_points_are_seen() -> None:
    """The discretization error of ten points less than ka needs is no rounding error."""
    a, b = matrix(KA, COARSE), incident(KA, COARSE, DIRECTIONS)
    exact = mie_series(KA, COARSE, DIRECTIONS)
    assert np.abs(solve(a, b) - exact).max() > 1e3 * allowed(a, exact)


@pytest.mark.gpu
def test_on_a_gpu(cp: Any) -> None:
    points = 1200
    a, b = matrix(KA, points), incident(KA, points, DIRECTIONS)
    found = solve(cp.asarray(a), cp.asarray(b), block=256)
    exact = mie_series(KA, points, DIRECTIONS)
    assert np.abs(found.get() - exact).max() <= allowed(a, exact)


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--ka", "5", "--points", "80"]) == 0
    assert "error against the Mie series" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--points", "81"])
