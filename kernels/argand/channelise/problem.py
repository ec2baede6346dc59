"""A call of `argand.channelise` as one value, without its data."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from argand.checks import is_integer
from argand.precision import Precision

LARGEST_PROTOTYPE = 1 << 26
"""Most coefficients, channels times taps."""
_FRACTION = re.compile(r"\d{1,9}(?:/\d{1,9}|\.\d{1,9})?", re.ASCII)
"""Text of an oversampling; of 1e99999999 a ``Fraction`` computes for hours."""


@dataclass(frozen=True)
class ChanneliseProblem:
    """Spectra y_sk = sum over l of h_l x_(s D + l) exp(-2 pi i k (s D + l) / M).

    Attributes:
        leading: the axes of the samples before time, which the result has too.
        samples: along time.
        channels, taps: M, the length of a transform, and T; there are T M coefficients h.
        oversampling: spectra a sample interval of a channel, M / D in lowest terms.
        real: whether the samples are; the result then has channels 0 to M / 2 alone.
        precision: the precision of the transforms; the filter's sums are those of its accumulator.
        conjugate: whether x is the conjugate of complex samples that are given.
    """

    leading: tuple[int, ...]
    samples: int
    channels: int
    taps: int
    oversampling: Fraction
    real: bool
    precision: Precision
    conjugate: bool = False

    @property
    def phases(self) -> int:
        """p of an oversampling p / q: spectra of one start modulo M are p apart."""
        return self.oversampling.numerator

    @property
    def frames(self) -> int:
        """q of an oversampling p / q: p spectra are q frames of M samples."""
        return self.oversampling.denominator

    @property
    def hop(self) -> int:
        """D, samples from one spectrum to the next."""
        return self.channels * self.frames // self.phases

    @property
    def spectra(self) -> int:
        """Number of spectra of a row: those whose T M samples are all there."""
        return spectra_of(self.samples, self.channels * self.taps, self.hop)

    @property
    def bins(self) -> int:
        """Channels of the result."""
        return self.channels // 2 + 1 if self.real else self.channels

    @property
    def rows(self) -> int:
        """Rows of samples."""
        return math.prod(self.leading)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (*self.leading, self.spectra, self.bins)

    @property
    def dtype(self) -> str:
        """Type of the result."""
        return self.precision.output

    @property
    def flops(self) -> float:
        """Nominal operations: the filter's products and sums, and 5 M log2 M of a transform."""
        parts = 1 if self.real else 2
        each = 2 * parts * self.taps + 2.5 * parts * math.log2(self.channels)
        return self.rows * self.spectra * self.channels * each


def spectra_of(samples: int, length: int, hop: int) -> int:
    """Return how many windows of a length, a hop apart, lie in ``samples`` samples."""
    return max(0, (samples - length) // hop + 1)


def oversampling_of(given: Any, channels: int) -> Fraction:
    """Return an oversampling as a fraction.

    Args:
        given: an integer, a ``Fraction``, text such as ``4/3``, or a number that is one exactly.
        channels: M.

    Raises ValueError for another, one below 1, and one whose numerator does not divide M.
    """
    try:
        if isinstance(given, str) and not _FRACTION.fullmatch(given.strip()):
            raise ValueError
        found = Fraction(int(given) if is_integer(given) else given)  # NumPy's may be of 8 bits
        if found.denominator > channels or (found > channels and not is_integer(given)):
            # 1.33 is one of 2^52
            raise ValueError
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise ValueError(f"oversampling must be a fraction such as 4/3, got {given!r}") from None
    if found < 1:
        raise ValueError(f"oversampling must be at least 1, got {found}")
    if channels % found.numerator:
        raise ValueError(
            f"channels must be a multiple of {found.numerator} at an oversampling of {found}, so "
            f"that spectra are whole samples apart, got {channels}"
        )
    return found


def check_sizes(channels: Any, taps: Any) -> None:
    """Raise ValueError for channels or taps that are not integers or out of range."""
    for name, value, least in (("channels", channels, 2), ("taps", taps, 1)):
        if not is_integer(value) or value < least:
            raise ValueError(f"{name} must be an integer from {least} on, got {value!r}")
    if int(channels) * int(taps) > LARGEST_PROTOTYPE:
        raise ValueError(
            f"channels times taps must be at most {LARGEST_PROTOTYPE}, got {channels} and {taps}"
        )
