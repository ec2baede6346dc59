"""The covariance of all antennas from their visibilities, and where the antennas stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workflow.data import Array
from workflow.files.input_error import InputError

_MAX_PAIRS, _MAX_MISSING = 1 << 20, 16
"""Pairs that an array may have, or times those of the file, where some are missing."""


@dataclass(frozen=True)
class AntennaPairs:
    """The visibility that is a covariance's element, for each row and column.

    Attributes:
        antennas: (antennas,) their numbers, sorted.
        baseline: (antennas, antennas) the baseline of the row's and the column's antenna; -1 where
            there is none.
        turned: (antennas, antennas) whether it is in the file from row to column, so that the
            element is its complex conjugate: a visibility is the product of the second antenna's
            voltage and the conjugate of the first's, an element that of the row's and the
            conjugate of the column's.
    """

    antennas: Array
    baseline: Array
    turned: Array


def pairs_of(baselines: Array, what: str, *, complete: bool) -> AntennaPairs:
    """Return the covariance that (baselines, 2) pairs of antennas make, each pair once.

    Raises InputError, which begins with ``what``, where all have to be there and a pair is missing:
    each antenna needs one with itself and with every other. Where they need not, an array of many
    antennas whose pairs are few is refused too.
    """
    antennas, place = np.unique(baselines, return_inverse=True)
    count = len(antennas)
    expected = count * (count + 1) // 2
    most = len(baselines) if complete else max(_MAX_PAIRS, _MAX_MISSING * len(baselines))
    if expected > most:  # before anything as large as a square is made
        raise InputError(_missing(what, count, expected - len(baselines)))
    row, column = place.reshape(-1, 2).T
    baseline = np.full((count, count), -1)
    turned = np.zeros((count, count), bool)
    baseline[row, column] = np.arange(len(baselines))
    turned[row, column] = row != column
    baseline[column, row] = np.arange(len(baselines))
    turned[column, row] = False
    lacking = int(np.count_nonzero(np.triu(baseline < 0)))
    if lacking and complete:
        raise InputError(_missing(what, count, lacking))
    return AntennaPairs(antennas, baseline, turned)


def _missing(what: str, count: int, lacking: int) -> str:
    return (
        f"{what}: a covariance of {count} antennas needs each pair of them, and each antenna with "
        f"itself, but {lacking} of {count * (count + 1) // 2} are not there; take visibilities, or "
        "`flagged: zero` in the input, which takes pairs that are missing for zeros"
    )


def east_north_up(relative: Array, latitude: float, longitude: float) -> Array:
    """Return (antennas, 3) positions in metres to the east, north and up of the array's centre.

    Args:
        relative: (antennas, 3) in metres, geocentric (x to longitude 0, z to the north pole) and
            relative to the centre.
        latitude, longitude: the place of the centre, in degrees.
    """
    return np.asarray(relative @ _horizon(latitude, longitude).T)


def geocentric(places: Array, latitude: float, longitude: float) -> Array:
    """Return (antennas, 3) positions as `east_north_up` takes them, of those that it returns."""
    return np.asarray(places @ _horizon(latitude, longitude))


def _horizon(latitude: float, longitude: float) -> Array:
    """Return the directions to the east, the north and the zenith, in the rows."""
    phi, lam = np.deg2rad((latitude, longitude))
    to_east = (-np.sin(lam), np.cos(lam), 0.0)
    to_north = (-np.sin(phi) * np.cos(lam), -np.sin(phi) * np.sin(lam), np.cos(phi))
    to_zenith = (np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi))
    return np.array([to_east, to_north, to_zenith])
