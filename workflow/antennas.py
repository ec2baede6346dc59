"""Antenna arrays: where antennas stand, where beams point, and the phases between.

East is x, north y, up z. A direction is given by its direction cosines l (east) and m (north), or
by azimuth (from north through east) and elevation. A plane wave from direction s reaches an antenna
at r earlier than the origin by tau = r . s / c, so its complex voltage there is that at the origin
times exp(+2 pi i f tau). Steering weights exp(-2 pi i f tau) undo that: weights . samples adds the
wave from s coherently, and its power in that beam is antennas^2 times that of one antenna.
"""

from __future__ import annotations

from math import ceil, isqrt, sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from argand.image.problem import SPEED_OF_LIGHT

Array = npt.NDArray[Any]
Geometry = Literal["linear", "planar"]


def positions(geometry: Geometry, antennas: int, spacing_m: float) -> Array:
    """Return (antennas, 2) east and north coordinates in metres, centred on their mean.

    ``linear`` is a line from west to east, ``planar`` a square grid filled row by row.
    """
    columns = antennas if geometry == "linear" else ceil(sqrt(antennas))
    index = np.arange(antennas)
    grid = spacing_m * np.stack([index % columns, index // columns], axis=-1).astype(float)
    return np.asarray(grid - grid.mean(axis=0))


def beam_grid(geometry: Geometry, beams: int) -> tuple[int, int]:
    """Return (rows in m, columns in l) of the beams' grid: divisors of ``beams`` nearest a square.

    A linear array resolves l alone: one row.
    """
    if geometry == "linear":
        return 1, beams
    rows = next(rows for rows in range(isqrt(beams), 0, -1) if beams % rows == 0)
    return rows, beams // rows


def beam_directions(
    geometry: Geometry, beams: int, extent: float, centre: tuple[float, float] = (0.0, 0.0)
) -> Array:
    """Return (beams, 2) direction cosines l, m of a regular grid, l the faster one.

    Each goes from -extent to extent about that of the centre, or is that where the grid has one
    value of it.
    """
    rows, columns = beam_grid(geometry, beams)
    m, l = np.meshgrid(  # noqa: E741
        _axis(rows, extent), _axis(columns, extent), indexing="ij"
    )
    return np.stack([l.ravel(), m.ravel()], axis=-1) + centre


def _axis(count: int, extent: float) -> Array:
    return np.linspace(-extent, extent, count) if count > 1 else np.zeros(1)


def direction_cosines(azimuth_deg: float, elevation_deg: float) -> tuple[float, float]:
    """Return (l, m) of an azimuth, from north through east, and an elevation above the horizon."""
    azimuth, elevation = np.deg2rad(azimuth_deg), np.deg2rad(elevation_deg)
    horizontal = np.cos(elevation)
    return float(np.sin(azimuth) * horizontal), float(np.cos(azimuth) * horizontal)


def phases(frequencies_hz: Array, where: Array, directions: Array) -> Array:
    """Return exp(2 pi i f tau) of each frequency, direction and antenna: (f, directions, antennas).

    ``where`` is (antennas, 2) or (antennas, 3) in metres, ``directions`` (directions, 2) of l and m
    above the horizon, or of any where the antennas lie in one plane: the third direction cosine
    does not enter then. Complex128; steering weights are its conjugate.
    """
    if where.shape[-1] > 2:
        above = np.sqrt(np.maximum(0, 1 - np.square(directions).sum(axis=-1, keepdims=True)))
        directions = np.concatenate([directions, above], axis=-1)
    delays = directions @ where.T / SPEED_OF_LIGHT
    return np.asarray(np.exp(2j * np.pi * frequencies_hz[:, None, None] * delays))
