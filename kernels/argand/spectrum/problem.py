"""A call of `argand.spectrum` as one value, without its data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from argand.channelise.problem import spectra_of
from argand.checks import as_flag, check_one_of, is_integer
from argand.dft.method import LARGEST_LENGTH
from argand.precision import Precision

Detrend = Literal["constant", "linear"]
"""Trends that can be subtracted from each segment: its mean, or its least-squares line."""
DETRENDS: tuple[Detrend, ...] = get_args(Detrend)
WHOLE = "all"
"""The value of ``average`` that makes one mean of all segments: Welch's estimate."""


@dataclass(frozen=True)
class SpectrumProblem:
    """Means of |X_sk|^2 over groups of segments s, with X_s the transform of a windowed segment.

    Attributes:
        leading: the axes of the samples before time, which the result has too.
        samples: along time.
        length: N, samples of a segment and points of its transform.
        overlap: samples that a segment shares with the next one.
        average: segments whose mean is one row of the result; what is left of them makes none.
        real: whether the samples are.
        onesided: whether a result of real samples has the bins 0 to N / 2 alone, the inner ones
            doubled.
        precision: the precision of the transforms.
        detrend: what is subtracted from a segment before the window, None for nothing.
        conjugate: whether x is the conjugate of complex samples that are given.
    """

    leading: tuple[int, ...]
    samples: int
    length: int
    overlap: int
    average: int
    real: bool
    onesided: bool
    precision: Precision
    detrend: Detrend | None = None
    conjugate: bool = False

    @property
    def hop(self) -> int:
        """Samples from one segment to the next."""
        return self.length - self.overlap

    @property
    def norm(self) -> Literal["forward", "backward"]:
        """The norm at which transforms, which of conjugates are inverse ones, are not scaled."""
        return "forward" if self.conjugate else "backward"

    @property
    def groups(self) -> int:
        """Rows of a result: whole groups of segments."""
        return spectra_of(self.samples, self.length, self.hop) // self.average

    @property
    def segments(self) -> int:
        """Segments that are in a result."""
        return self.groups * self.average

    @property
    def half(self) -> int:
        """Bins of a transform that are computed: of real samples 0 to N / 2."""
        return self.length // 2 + 1 if self.real else self.length

    @property
    def bins(self) -> int:
        """Bins of the result."""
        return self.half if self.onesided else self.length

    @property
    def rows(self) -> int:
        """Rows of samples."""
        return math.prod(self.leading)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (*self.leading, self.groups, self.bins)

    @property
    def dtype(self) -> str:
        """Type of the result."""
        return self.precision.real_output

    @property
    def doubled(self) -> slice:
        """Bins of a one-sided result that hold the power of negative frequencies as well."""
        return slice(1, (self.length + 1) // 2 if self.onesided else 1)

    @property
    def flops(self) -> float:
        """Nominal operations: the window, 5 N log2 N of a transform, |X|^2 and its sum."""
        parts = 1 if self.real else 2
        each = parts * (1 + 2.5 * math.log2(max(2, self.length)) + 2)
        return self.rows * self.segments * self.length * each


def spectrum_problem(
    shape: tuple[int, ...], *, length: Any, overlap: Any, average: Any, real: bool, onesided: Any,
    precision: Precision, detrend: Any = None, conjugate: bool = False,
) -> SpectrumProblem:  # fmt: skip
    """Return the problem of a call for samples of a shape.

    Arguments and errors are those of `argand.spectrum`.
    """
    length = _integer("length", length, 1, LARGEST_LENGTH)
    overlap = length // 2 if overlap is None else _integer("overlap", overlap, 0, length - 1)
    if isinstance(average, str) and average == WHOLE:
        average = max(1, spectra_of(shape[-1], length, length - overlap))
    else:
        average = _integer("average", average, 1, None, f", or {WHOLE!r}")
    onesided = real if onesided is None else as_flag(onesided, "onesided")
    if onesided and not real:
        raise ValueError(
            "onesided must be false or None for complex samples: their negative frequencies hold "
            "a power of their own"
        )
    check_one_of("detrend", detrend, DETRENDS, or_none=True)
    return SpectrumProblem(
        leading=shape[:-1], samples=shape[-1], length=length, overlap=overlap, average=average,
        real=real, onesided=onesided, precision=precision, detrend=detrend, conjugate=conjugate,
    )  # fmt: skip


def _integer(name: str, value: Any, least: int, most: int | None, more: str = "") -> int:
    if not is_integer(value):
        raise ValueError(f"{name} must be an integer{more}, got {value!r}")
    found = int(value)
    if found < least or (most is not None and found > most):
        limits = f"from {least} on" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be {limits}{more}, got {found}")
    return found
