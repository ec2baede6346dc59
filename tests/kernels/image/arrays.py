"""Covariances, antennas and directions, their power by a direct sum in fp64, and its bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from argand import PRECISIONS
from argand.image.problem import SPEED_OF_LIGHT

from workflow.accuracy.image_bounds import image_bound

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sky:
    """Arguments of `argand.image`."""

    covariances: Array
    positions: Array
    frequencies: Array
    directions: Array

    @property
    def arguments(self) -> tuple[Array, Array, Array, Array]:
        return self.covariances, self.positions, self.frequencies, self.directions

    @property
    def turns(self) -> float:
        """Largest distance from the centre in wavelengths; the positions are about the origin."""
        far = np.sqrt((self.positions**2).sum(axis=1)).max(initial=0)
        return float(2 * far * self.frequencies.max(initial=0) / SPEED_OF_LIGHT)

    def power(self, sign: int = 1) -> Array:
        """The direct sum."""
        s = self.directions
        if s.shape[1] == 2:
            s = np.column_stack([s, np.sqrt(np.maximum(0, 1 - (s**2).sum(axis=1)))])
        x = self.positions
        if x.shape[1] == 2:
            x = np.column_stack([x, np.zeros(len(x))])
        total = np.zeros((*self.covariances.shape[:-3], len(s)))
        for channel, frequency in enumerate(self.frequencies):
            w = np.exp(sign * 2j * np.pi * (frequency / SPEED_OF_LIGHT) * (x @ s.T))
            r = self.covariances[..., channel, :, :].astype(complex)
            total += np.einsum("ad,...ab,bd->...d", w.conj(), r, w, optimize=True).real
        return total

    def allowed(self, precision: str, backend: str) -> Array:
        """(..., 1) what a power may be off by (`workflow.accuracy.image_bounds`)."""
        r = self.covariances
        size = (np.abs(r.real) + np.abs(r.imag)).sum(axis=(-1, -2, -3))
        channels, antennas = r.shape[-3], r.shape[-1]
        row = PRECISIONS[precision]
        return image_bound(row, antennas, channels, self.turns, backend) * size[..., None]


def sky(
    antennas: int, channels: int, directions: int, *, leading: tuple[int, ...] = (),
    extent: float = 300.0, dimensions: int = 3, seed: int = 0, kind: str = "complex64",
) -> Sky:  # fmt: skip
    """Random covariances of a few samples, of antennas within an extent in metres."""
    rng = np.random.default_rng(seed)
    shape = (*leading, channels, antennas, antennas + 3)
    v = rng.standard_normal((*shape, 2)).view(complex)[..., 0]
    r = (v @ v.conj().swapaxes(-1, -2) / shape[-1]).astype(kind)
    lm = rng.uniform(-0.7, 0.7, (directions, 2))
    return Sky(
        r, extent * rng.uniform(-1, 1, (antennas, dimensions)),
        np.linspace(120e6, 180e6, channels) if channels else np.zeros(0), lm,
    )  # fmt: skip
