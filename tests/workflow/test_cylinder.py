"""Waves on a conducting cylinder: solutions of a dense system against the Mie series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import solve
from scipy import integrate
from scipy.special import hankel1

from tests.kernels.solve.systems import bound
from workflow.cylinder import directions, incident, matrix, mie_series, surface

KA, POINTS, COARSE = 20.0, 200, 100
ANGLES = np.array([0.0, 1.0, 2.5])


def allowed(a: Any, x: Any) -> float:
    """The largest error that the backward errors of x and of the matrix leave.

    Arguments of functions reach 2 ka = 40, and an error of u in them moves an entry by 40 u; the
    errors of SciPy's functions and of the other operations are less than 60 u.
    """
    off = bound(len(a), "complex128") + 100 * 2.0**-53
    return float(2 * np.linalg.cond(a, np.inf) * off * np.abs(x).max())


@pytest.mark.parametrize("precision", [None, "15xint8", "9xint8"])
def test_current_is_that_of_the_mie_series(precision: str | None) -> None:
    a, b = matrix(KA, POINTS), incident(KA, POINTS, ANGLES)
    found = solve(a, b, precision=precision, block=64)
    exact = mie_series(KA, POINTS, ANGLES)
    assert np.abs(found - exact).max() <= allowed(a, exact)


def test_too_few_points_are_seen() -> None:
    """The discretization error of ten points less than ka needs is not rounding error."""
    a, b = matrix(KA, COARSE), incident(KA, COARSE, ANGLES)
    exact = mie_series(KA, COARSE, ANGLES)
    assert np.abs(solve(a, b) - exact).max() > 1e3 * allowed(a, exact)


def test_a_part_is_that_part_of_the_whole() -> None:
    rows, columns = slice(3, 50), slice(40, 190)
    np.testing.assert_array_equal(
        matrix(KA, POINTS, rows, columns), matrix(KA, POINTS)[rows, columns]
    )
    some = slice(1, 3)
    for function in (incident, mie_series):
        whole = function(KA, POINTS, ANGLES)
        part = function(KA, POINTS, ANGLES, rows, some)
        # Sums of the series may be added in another order: of 2 x 95 terms of modulus up to 1.
        assert np.abs(part - whole[rows, some]).max() <= 200 * 2.0**-52 * np.abs(whole).max()


def test_weights_integrate_the_logarithm() -> None:
    """The operator on a constant at ka -> 0: the logarithm's integral over the circle is known.

    i/4 H0(z) is -log(z / 2) / (2 pi) - gamma / (2 pi) + i/4 + O(z^2 log z), and the mean of
    log |x - y| over a circle of radius 1 around a point of it is 0.
    """
    ka = 1e-6
    found = matrix(ka, 80) @ np.ones(80)
    expected = 2 * np.pi * (0.25j - (np.log(ka / 2) + np.euler_gamma) / (2 * np.pi))
    assert np.abs(found - expected).max() <= 1e-9 * abs(expected)


def test_an_entry_of_the_operator_is_the_integral() -> None:
    """G applied to cos at one point, by another quadrature."""
    ka, points, at = 5.0, 120, 17
    _, angle, _ = surface(points)

    def kernel(phi: float) -> complex:
        distance = abs(np.exp(1j * angle[at]) - np.exp(1j * phi))
        return complex(0.25j * hankel1(0, ka * distance) * np.cos(phi))

    total = 0j
    for part, factor in ((np.real, 1), (np.imag, 1j)):
        for low, high in ((0, np.pi), (np.pi, 2 * np.pi)):
            total += factor * integrate.quad(
                lambda t, part=part: part(kernel(angle[at] + t)), low, high, epsabs=1e-11, limit=200
            )[0]  # fmt: skip
    assert abs((matrix(ka, points) @ np.cos(angle))[at] - total) <= 1e-9


def test_directions_are_equidistant() -> None:
    np.testing.assert_allclose(directions(4), np.pi / 2 * np.arange(4), rtol=0, atol=1e-15)


@pytest.mark.gpu
def test_on_a_gpu(cp: Any) -> None:
    points = 1200
    a, b = matrix(KA, points), incident(KA, points, ANGLES)
    found = solve(cp.asarray(a), cp.asarray(b), block=256)
    exact = mie_series(KA, points, ANGLES)
    assert np.abs(found.get() - exact).max() <= allowed(a, exact)
