"""The assessment of images: power over directions, against a complex product in fp64."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from argand import Precision
from argand.image.problem import SPEED_OF_LIGHT

from workflow.accuracy.assessment import (
    Accuracy,
    Checks,
    finite,
    largest_ratio,
    misplaced,
    ratio,
    same_shape,
)
from workflow.accuracy.bounds import accumulator_roundoff, gamma
from workflow.accuracy.image_bounds import image_bound
from workflow.accuracy.lines import norm_of
from workflow.accuracy.measures import Measure, measured
from workflow.accuracy.underflow import underflow
from workflow.threads import each, stretches

MEASURES = (
    Measure(
        column="dynamic_range_db", caption="dynamic range", unit="dB", together=min,
        what="The brightest power over the rms of the error.",
    ),
    Measure(
        column="peak_shift", caption="peaks moved", unit="cells",
        what="How far the brightest local maxima have moved.",
    ),
)  # fmt: skip
Array = npt.NDArray[np.float64]
_BLOCK = 4096
"""Directions whose weights are held at a time by a thread."""
_PEAKS = 8
"""Brightest local maxima of an image whose places are compared."""
_FAINTEST = 0.1
"""Fraction of the brightest direction below which local maxima are not compared."""


@dataclass(frozen=True)
class ImageReference:
    """Images in fp64.

    Attributes:
        power: (image, m, l), complex128's real part; NaN where R is not finite.
        size: (image,), the sum of |Re R| + |Im R|, of what was summed apart.
        turns: largest distance of an antenna from the centre, in wavelengths.
        antennas, channels, terms: how many, and covariances that were added up before.
    """

    power: Array
    size: Array
    turns: float
    antennas: int
    channels: int
    terms: int


def image_reference(
    covariances: npt.NDArray[np.complexfloating],
    positions: Array,
    frequencies: Array,
    directions: Array,
    grid: tuple[int, int],
) -> ImageReference:
    """Return the image of covariances (image, term, channel, antenna, antenna), terms added.

    It is zgemm's R w with complex weights of all antennas, then the sum of conj(w) R w: neither the
    real form nor the blocks of `argand.image`. ``directions`` are (direction, 3), ``positions``
    (antenna, 3) about their centre, ``grid`` the rows and columns of the directions.
    """
    images, terms, channels, antennas = covariances.shape[:4]
    power = np.zeros((images, len(directions)))
    size = np.zeros(images)
    delays = positions / SPEED_OF_LIGHT
    with np.errstate(all="ignore"):
        for channel in range(channels):
            given = covariances[:, :, channel].astype(complex)
            size += (np.abs(given.real) + np.abs(given.imag)).sum(axis=(1, 2, 3))
            r = given.sum(axis=1)
            r = (r + r.conj().swapaxes(-1, -2)) / 2
            frequency = float(frequencies[channel])

            def add(
                some: slice, r: npt.NDArray[np.complexfloating] = r, f: float = frequency
            ) -> None:
                weights = np.exp(2j * np.pi * f * (delays @ directions[some].T))
                for image, matrix in enumerate(r):
                    formed = matrix @ weights
                    power[image, some] += (
                        formed.real * weights.real + formed.imag * weights.imag
                    ).sum(axis=0)

            for _ in each(add, stretches(len(directions), _BLOCK)):
                pass
    far = np.sqrt((positions**2).sum(axis=1)).max(initial=0)
    turns = float(far * frequencies.max(initial=0) / SPEED_OF_LIGHT)
    return ImageReference(power.reshape(images, *grid), size, turns, antennas, channels, terms)


def assess_image(
    reference: ImageReference, result: Array, precision: Precision, *, backend: str
) -> Accuracy:
    """Verify every direction of (image, m, l) by `image_bound` times its image's size T.

    ``componentwise_re`` is the largest error over T. ``dynamic_range_db`` is the brightest power
    over the root mean square of the error, of the image with the least: fainter features than that
    are the arithmetic's. ``peak_shift`` is how far the brightest local maxima have moved, in cells.
    An image that is not finite in fp64 must not be finite.
    """
    result = np.asarray(result)
    same_shape(result, reference.power.shape)
    checks, truth = Checks(), reference.power
    bound = image_bound(precision, reference.antennas, reference.channels, reference.turns, backend)
    # Covariances that are added up first are rounded once each.
    bound += (1 + bound) * gamma(reference.terms - 1, accumulator_roundoff(precision))
    lost = _lost(reference, precision, backend)
    known = np.isfinite(truth)
    with np.errstate(all="ignore"):
        got = result.astype(float)
        checks.placed(misplaced(known, finite(got)), "directions", result.dtype)
        error = np.where(known, np.abs(got - truth), 0.0)
        size = np.where(np.isfinite(reference.size), reference.size, 0.0)[:, None, None]
        allowed = np.where(size > 0, bound * size + lost, 0)  # nothing underflows of zeros
        worst = largest_ratio(error, allowed)
        checks.require(
            worst <= 1,
            f"componentwise: a direction is off by {worst:.3g} times what is allowed "
            f"({bound:.3g} of the moduli)",
        )
        share = float(np.where(error == 0, 0.0, error / size).max(initial=0))
        norm = norm_of(np.where(known, truth, 0.0))
        relative = ratio(norm_of(error), norm)
        proved = ratio(norm_of(np.broadcast_to(allowed, error.shape)), norm)
    return Accuracy(
        error_limit=relative,
        componentwise_re=share,
        measures=measured(
            dynamic_range_db=_dynamic_range(truth, error, known),
            peak_shift=_peak_shift(truth, got),
        ),
        reference="full",
        reference_rows=truth.size,
        **checks.conclude(relative, proved, proved, precision),
    )


def _lost(reference: ImageReference, precision: Precision, backend: str) -> float:
    """Return the bound of the underflow of a power: of each entry of R, and of each operation."""
    terms = underflow(precision, backend)
    operations = 8.0 * reference.antennas**2 * reference.channels * reference.terms
    return operations * (terms.operand + terms.result)


def _dynamic_range(truth: Array, error: Array, known: npt.NDArray[np.bool_]) -> float | None:
    """Return 10 log10 of peak over rms error, the least of all images.

    It is None where nothing is off.
    """
    found = []
    for image, off, there in zip(truth, error, known, strict=True):
        peak = float(np.max(image, initial=0, where=there))
        rms = norm_of(off) / math.sqrt(max(1, off.size))
        if peak > 0 and 0 < rms < math.inf:
            found.append(10 * math.log10(peak / rms))
    return min(found, default=None)


def _peak_shift(truth: Array, got: Array) -> float:
    """Return how many cells the brightest local maxima are from those of the result, at most."""
    furthest = 0.0
    for image, other in zip(truth, got, strict=True):
        if not (np.isfinite(image).all() and np.isfinite(other).all()):
            continue
        for row, column in _peaks(image):
            near = np.s_[max(0, row - 2) : row + 3, max(0, column - 2) : column + 3]
            place = np.unravel_index(int(other[near].argmax()), other[near].shape)
            apart = (place[0] + near[0].start - row, place[1] + near[1].start - column)
            furthest = max(furthest, math.hypot(*map(float, apart)))
    return furthest


def _peaks(image: Array) -> list[tuple[int, int]]:
    """Return the brightest of the cells that are brighter than all within two rows and columns."""
    from scipy.ndimage import maximum_filter

    highest = maximum_filter(image, size=5, mode="constant", cval=-np.inf)
    there = np.argwhere((image == highest) & (image >= _FAINTEST * image.max(initial=0)))
    brightest = sorted(there.tolist(), key=lambda at: -image[at[0], at[1]])[:_PEAKS]
    return [(int(row), int(column)) for row, column in brightest]
