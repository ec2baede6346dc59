"""Samples of antennas in plane waves, and the weights that steer beams, made in boxes.

Arrays are (channel, polarization, antenna, time) and (channel, polarization, beam, antenna).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from workflow.antennas import phases
from workflow.drawn import Box
from workflow.storage.noise import complex_normal

Array = npt.NDArray[Any]
Generators = Callable[..., np.random.Generator]
"""A generator for each key, a few whole numbers."""


class Wave(Protocol):
    """Gaussian noise of a mean power at one antenna, from a direction (l, m)."""

    @property
    def direction(self) -> tuple[float, float]:
        """Direction cosines towards east and north."""

    @property
    def power(self) -> float:
        """Mean power at one antenna."""


def steering_weights(
    frequencies_hz: Array, where: Array, directions: Array, dtype: npt.DTypeLike = np.complex64
) -> Callable[[Box], Array]:
    """Return a function that makes boxes of beams' weights, the same ones for each polarization.

    Args:
        frequencies_hz: (channels,) centres of the channels.
        where: (antennas, 2) or (antennas, 3) in metres.
        directions: (beams, 2) direction cosines.
        dtype: the type of the weights.
    """

    def make(box: Box) -> Array:
        channels, _, beams, elements = box.within
        steering = phases(frequencies_hz[channels], where[elements], directions[beams])
        weights = np.conj(steering).astype(dtype)[:, None]
        return np.broadcast_to(weights, box.shape)

    return make


def received(
    frequencies_hz: Array, where: Array, waves: Sequence[Wave], noise: float, rng: Generators
) -> Callable[[Box], Array]:
    """Return a function that makes boxes of samples: each antenna's noise, and waves with phases.

    A wave differs between antennas only by its phase, so it is drawn by the box's place along the
    other axes.
    """
    directions = np.array([wave.direction for wave in waves]).reshape(-1, 2)

    def make(box: Box) -> Array:
        channel, polarization, _, time = box.offset
        samples = complex_normal(rng(0, *box.offset), box.shape, noise)
        arriving = phases(frequencies_hz[box.along(0)], where[box.along(2)], directions)
        for index, wave in enumerate(waves):
            own = rng(1 + index, channel, polarization, time)
            values = complex_normal(own, (*box.shape[:2], 1, box.shape[3]), wave.power)
            samples += arriving[:, None, index, :, None].astype(np.complex64) * values
        return samples

    return make


def received_band(
    centre_hz: float, rate_hz: float, where: Array, waves: Sequence[Wave], rng: Generators
) -> Callable[[Box], Array]:
    """Return a function that makes boxes (polarization, antenna, time) of waves as wide as a band.

    The band is of ``rate_hz`` about ``centre_hz``, which is frequency 0 in the samples. A wave's
    spectrum is white Gaussian noise, drawn by the box's place along polarization and time; an
    antenna has it with the phase of its delay at each frequency, so within a box delays are cyclic.
    """
    directions = np.array([wave.direction for wave in waves]).reshape(-1, 2)

    def make(box: Box) -> Array:
        polarization, _, time = box.offset
        points = box.shape[2]
        frequencies = centre_hz + rate_hz * np.fft.fftfreq(points)
        arriving = phases(frequencies, where[box.along(1)], directions)
        spectra = np.zeros(box.shape, complex)
        for index, wave in enumerate(waves):
            own = rng(index, polarization, time)
            values = complex_normal(own, (box.shape[0], 1, points), wave.power * points)
            spectra += arriving[:, index].T * values
        return np.asarray(np.fft.ifft(spectra), np.complex64)

    return make
