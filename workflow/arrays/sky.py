"""Covariances of a simulated sky: plane waves and noise at antennas scattered over a disc."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workflow.arrays.plane_waves import Array, Generators, Wave, received
from workflow.drawn import Box


def scattered(antennas: int, radius_m: float, rng: np.random.Generator) -> Array:
    """Return (antennas, 2) east and north in m, uniform over a disc: few side lobes are alike."""
    distance = radius_m * np.sqrt(rng.uniform(size=antennas))
    angle = 2 * np.pi * rng.uniform(size=antennas)
    return np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=-1)


def covariances(
    frequencies_hz: Array, where: Array, waves: Sequence[Wave], noise: float, samples: int,
    rng: Generators,
) -> Array:  # fmt: skip
    """Return (1, 1, channels, antennas, antennas) means of v v^H over samples, complex64."""
    make = received(frequencies_hz, where, waves, noise, rng)
    channels, antennas = len(frequencies_hz), len(where)
    found = np.empty((1, 1, channels, antennas, antennas), np.complex64)
    for channel in range(channels):
        box = Box((channel, 0, 0, 0), (1, 1, antennas, samples))
        voltages = make(box)[0, 0]
        found[0, 0, channel] = voltages @ voltages.conj().T / samples
    return found
