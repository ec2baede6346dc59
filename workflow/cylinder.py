"""A plane wave on a conducting cylinder: an integral equation, and the series that solves it.

A wave exp(i k x.d) whose electric field is parallel to the cylinder of radius 1 meets it from some
directions d. The field vanishes on the surface, so the current psi, the normal derivative of the
field, solves the integral over the surface of G psi = the incident wave, with G = i/4 H0(k r),
Hankel's function of the first kind. Nystrom's method with Kress's quadrature of the logarithm
(Colton and Kress, Inverse Acoustic and Electromagnetic Scattering Theory, 3.6) makes a dense
complex system of it, whose discretization error falls exponentially with the points. They are
spread unevenly, so that the matrix is not circulant. Each direction is a right-hand side.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_WARP = 0.3
"""Angles are s + 0.3 sin(s), of equidistant s."""
_EVERY = slice(None)


def surface(points: int) -> tuple[Array, Array, Array]:
    """Return parameters s, angles in radians, and derivatives, at an even number of points."""
    s = 2 * np.pi * np.arange(points) / points
    return s, s + _WARP * np.sin(s), 1 + _WARP * np.cos(s)


def directions(count: int) -> Array:
    """Return the angles of incidence in radians, equidistant, from 0 on."""
    return np.asarray(2 * np.pi * np.arange(count) / count)


def matrix(ka: float, points: int, rows: slice = _EVERY, columns: slice = _EVERY) -> Array:
    """Return rows and columns of the integral operator at ``points`` of the surface, complex128.

    G = G1 log(4 sin^2((s - t) / 2)) + G2 with smooth G1 = -J0(k r) / (4 pi) and G2; the first term
    has Kress's weights, the second those of the trapezoidal rule. ``ka`` is wavenumber times
    radius.
    """
    from scipy.special import hankel1, j0

    s, angle, speed = surface(points)
    numbers = np.arange(points)
    lag = numbers[rows, None] - numbers[columns]
    same = lag == 0
    on_circle = np.exp(1j * angle)
    distance = np.abs(on_circle[rows, None] - on_circle[columns])
    singular = -j0(ka * distance) / (4 * np.pi)
    distance[same] = 1
    chord = 4 * np.sin((s[rows, None] - s[columns]) / 2) ** 2
    chord[same] = 1
    smooth = 0.25j * hankel1(0, ka * distance) - singular * np.log(chord)
    at_itself = 0.25j - (np.log(ka * speed / 2) + np.euler_gamma) / (2 * np.pi)
    smooth[same] = np.broadcast_to(at_itself[columns], lag.shape)[same]
    weights = _weights(points)[lag % points]
    return np.asarray((weights * singular + 2 * np.pi / points * smooth) * speed[columns])


@lru_cache(maxsize=4)
def _weights(points: int) -> Array:
    """Return Kress's weights by lag: -(2 pi / h) sum of cos(m t) / m, m < h, - (pi / h^2) cos(h t).

    h is half the points. The sum is a discrete Fourier transform.
    """
    half = points // 2
    terms = np.zeros(points)
    terms[1:half] = 1 / np.arange(1, half)
    last = np.pi / half**2 * (-1.0) ** np.arange(points)
    return np.asarray(-2 * np.pi / half * np.fft.fft(terms).real - last)


def incident(
    ka: float, points: int, angles: Array, rows: slice = _EVERY, columns: slice = _EVERY
) -> Array:
    """Return waves of directions ``angles`` in radians on the surface, (points, directions)."""
    _, angle, _ = surface(points)
    return np.asarray(np.exp(1j * ka * np.cos(angle[rows, None] - angles[columns])))


def mie_series(
    ka: float, points: int, angles: Array, rows: slice = _EVERY, columns: slice = _EVERY
) -> Array:
    """Return the current of the exact solution, a sum over cylinder harmonics, as `incident`."""
    from scipy.special import hankel1

    _, angle, _ = surface(points)
    # Hankel's functions grow faster than exponentially beyond an order of ka.
    most = int(ka + 20 * ka ** (1 / 3) + 20)
    orders = np.arange(-most, most + 1)
    terms = 1j ** (orders % 4) / hankel1(orders, ka)
    return np.asarray(
        -2j / np.pi * np.exp(1j * np.outer(angle[rows], orders))
        @ (terms[:, None] * np.exp(-1j * np.outer(orders, angles[columns])))
    )  # fmt: skip
