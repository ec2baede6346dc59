"""A plane wave on a conducting cylinder: a boundary integral equation against the Mie series.

    python -m benchmarks.cylinder --ka 50 --points 400 --precision 15xint8
    python -m benchmarks.cylinder --ka 700 --points 8192 --angles 64 --gpu

A wave exp(i k x.d) whose electric field is parallel to the cylinder of radius 1 meets it from some
directions d. The field vanishes on the surface, so the current psi, the normal derivative of the
field, solves the integral over the surface of G psi = the incident wave, with G = i/4 H0(k r),
Hankel's function of the first kind. Nystrom's method with Kress's quadrature of the logarithm
(Colton and Kress, Inverse Acoustic and Electromagnetic Scattering Theory, 3.6) makes a dense
complex system of it, whose discretization error falls exponentially with the points. They are
spread unevenly, so that the matrix is not circulant. Each direction is a right-hand side.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import solve
from scipy.special import hankel1, j0

Array = npt.NDArray[Any]
_WARP = 0.3
"""Angles are s + 0.3 sin(s), of equidistant s."""


def surface(points: int) -> tuple[Array, Array, Array]:
    """Parameters s, angles, and their derivatives, at an even number of points."""
    s = 2 * np.pi * np.arange(points) / points
    return s, s + _WARP * np.sin(s), 1 + _WARP * np.cos(s)


def matrix(ka: float, points: int) -> Array:
    """The integral operator at ``points`` of the surface: complex128 (points, points).

    G = G1 log(4 sin^2((s - t) / 2)) + G2 with smooth G1 = -J0(k r) / (4 pi) and G2; the first term
    has Kress's weights, the second those of the trapezoidal rule.
    """
    s, angle, speed = surface(points)
    half, numbers = points // 2, np.arange(points)
    lag, order = 2 * np.pi * numbers / points, np.arange(1, half)
    weights = -(2 * np.pi / half) * (np.cos(np.outer(lag, order)) / order).sum(axis=1)
    weights -= np.pi / half**2 * np.cos(half * lag)
    same = np.eye(points, dtype=bool)
    distance = np.abs(np.exp(1j * angle)[:, None] - np.exp(1j * angle))
    singular = -j0(ka * distance) / (4 * np.pi)
    distance[same] = 1
    chord = 4 * np.sin((s[:, None] - s) / 2) ** 2
    chord[same] = 1
    smooth = 0.25j * hankel1(0, ka * distance) - singular * np.log(chord)
    smooth[same] = 0.25j - (np.log(ka * speed / 2) + np.euler_gamma) / (2 * np.pi)
    by_lag = weights[(numbers[:, None] - numbers) % points]
    return np.asarray((by_lag * singular + np.pi / half * smooth) * speed)


def incident(ka: float, points: int, directions: Array) -> Array:
    """The waves of these directions (angles in radians) on the surface: (points, directions)."""
    _, angle, _ = surface(points)
    return np.asarray(np.exp(1j * ka * np.cos(angle[:, None] - directions)))


def mie_series(ka: float, points: int, directions: Array) -> Array:
    """The current of the exact solution, a sum over cylinder harmonics, as `incident`."""
    _, angle, _ = surface(points)
    # Hankel's functions grow faster than exponentially beyond an order of ka.
    most = int(ka + 20 * ka ** (1 / 3) + 20)
    orders = np.arange(-most, most + 1)
    terms = 1j ** (orders % 4) / hankel1(orders, ka)
    return np.asarray(
        -2j / np.pi * np.exp(1j * np.outer(angle, orders))
        @ (terms[:, None] * np.exp(-1j * np.outer(orders, directions)))
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Solve, and print the error against the series."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ka", type=float, default=50.0, help="wavenumber times radius")
    parser.add_argument("--points", type=int, default=400, help="even; about 8 ka or more")
    parser.add_argument("--angles", type=int, default=3, help="directions of incidence")
    parser.add_argument("--precision", help="of the products, as of argand.solve")
    parser.add_argument("--gpu", action="store_true", help="solve on the first GPU")
    given = parser.parse_args(argv)
    if given.points % 2:
        parser.error(f"--points must be even, got {given.points}")
    directions = 2 * np.pi * np.arange(given.angles) / given.angles
    a, b = matrix(given.ka, given.points), incident(given.ka, given.points, directions)
    if given.gpu:
        import cupy

        a, b = cupy.asarray(a), cupy.asarray(b)
    started = time.perf_counter()
    found = solve(a, b, precision=given.precision, details=True)
    current = found.x.get() if given.gpu else found.x
    seconds = time.perf_counter() - started
    exact = mie_series(given.ka, given.points, directions)
    error = np.abs(current - exact).max() / np.abs(exact).max()
    print(
        f"ka {given.ka:g}, {given.points} points, {given.angles} directions: {seconds:.3f} s, "
        f"backward error {found.backward_error:.1e}, {found.steps} steps, "
        f"error against the Mie series {error:.1e}"
    )
    return 0


if __name__ == "__main__":
    main()
