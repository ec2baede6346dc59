"""The assessment of spectral estimates: means of |X|^2 against SciPy in fp64, and in decibels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from argand import Precision, SpectrumProblem
from argand.spectrum.problem import Detrend

from workflow.accuracy.assessment import (
    Accuracy,
    Checks,
    finite_lines,
    largest_ratio,
    misplaced,
    ratio,
    same_shape,
)
from workflow.accuracy.lines import norm_along, norm_of
from workflow.accuracy.measures import Measure, measured
from workflow.accuracy.spectra_bounds import spectra_bound
from workflow.threads import each, stretches

MEASURES = (
    Measure(
        column="noise_floor_db", caption="noise floor", unit="dB",
        what="What arithmetic leaves in a bin beside the strongest line.",
    ),
    Measure(
        column="scalloping_db", caption="scalloping", unit="dB",
        what="What a tone midway between two bins loses.",
    ),
)  # fmt: skip
Array = npt.NDArray[Any]
_BLOCK_VALUES = 1 << 18
"""Windowed samples that a thread holds at a time."""
_STRONG = 0.01
"""Powers are compared of bins above this fraction of a row's strongest one."""


@dataclass(frozen=True)
class SpectraReference:
    """Means of |X|^2 in fp64.

    Attributes:
        problem: the sizes.
        window: (N,), without the scale.
        power: (row, group, bin).
        total: (row, group), T of `spectra_bounds`.
        peak: (row, group), the mean over segments of the largest |X_sk|^2 on one side.
        given: (row, group), the mean over segments of what T is where all samples are as the
            largest one before a trend was subtracted; 0 without one.
    """

    problem: SpectrumProblem
    window: Array
    power: Array
    total: Array
    peak: Array
    given: Array


def spectra_reference(
    x: Array, window: Array, problem: SpectrumProblem, *, scaling: str, sample_rate: float
) -> SpectraReference:
    """Return the means of (..., time) by SciPy's transforms of windowed segments in fp64.

    Sums over segments are added in fp64, and the scale is a factor in the end, as in scipy.signal.
    Trends are subtracted by ``scipy.signal.detrend``.
    """
    rows = x.reshape(-1, x.shape[-1])
    wide = float if problem.real else complex
    w = np.asarray(window, float)
    scale = 1 / (sample_rate * (w @ w)) if scaling == "density" else 1 / w.sum() ** 2
    power = np.zeros((len(rows), problem.groups, problem.half))
    total, peak, given = np.zeros((3, len(rows), problem.groups))

    def sums(block: tuple[int, int, int]) -> tuple[Array, Array, Array, Array]:
        """Return the sums over whole groups of segments, or over a part of one."""
        from scipy import fft

        row, first, count = block
        begin = first * problem.hop
        part = rows[row, begin : begin + (count - 1) * problem.hop + problem.length].astype(wide)
        views = np.lib.stride_tricks.sliding_window_view(part, problem.length)[:: problem.hop]
        largest = np.zeros(count)
        if problem.detrend:
            largest = np.square(np.abs(views).max(axis=-1)) * problem.length * (w @ w)
            views = _without_trends(views, problem.detrend)
        found = (fft.rfft if problem.real else fft.fft)(views * w)
        squares = np.square(found.real) + np.square(found.imag)
        grouped = squares.reshape(-1, min(problem.average, count), problem.half)
        both = _both_sides(grouped, problem).sum(axis=1)
        before = largest.reshape(len(grouped), -1).sum(axis=1)
        return grouped.sum(axis=1), both, _peaks(grouped), before

    blocks = _blocks(problem, len(rows))
    with np.errstate(all="ignore"):
        for (row, first, _), found in zip(blocks, each(sums, blocks), strict=True):
            group = first // problem.average
            some = slice(group, group + len(found[0]))
            for target, added in zip((power, total, peak, given), found, strict=True):
                target[row, some] += added
        for target in (power, total, peak, given):
            target *= scale / problem.average
    return SpectraReference(problem, w, _as_asked(power, problem), total, peak, given)


def _blocks(problem: SpectrumProblem, rows: int) -> list[tuple[int, int, int]]:
    """Return row, first segment and number of segments: of whole groups, or of a part of one."""
    most = max(1, _BLOCK_VALUES // problem.length)
    average, found = problem.average, []
    for row in range(rows):
        if average <= most:
            step = most // average * average
            firsts = range(0, problem.segments, step)
            found += [(row, first, min(step, problem.segments - first)) for first in firsts]
            continue
        for group in range(0, problem.segments, average):
            parts = range(0, average, most)
            found += [(row, group + at, min(most, average - at)) for at in parts]
    return found


def _without_trends(segments: Array, kind: Detrend) -> Array:
    """Return segments less their trends; SciPy takes none that is not finite, which is NaN here."""
    from scipy import signal

    known = np.isfinite(segments).all(axis=-1, keepdims=True)
    return np.where(known, signal.detrend(np.where(known, segments, 0), type=kind), np.nan)


def _both_sides(squares: Array, problem: SpectrumProblem) -> Array:
    """Return the sum over all N bins of (..., computed bins)."""
    found = squares.sum(axis=-1)
    if problem.real:
        found = found + squares[..., 1 : (problem.length + 1) // 2].sum(axis=-1)
    return np.asarray(found)


def _peaks(squares: Array) -> Array:
    return np.asarray(squares.max(axis=-1).sum(axis=-1))


def _as_asked(power: Array, problem: SpectrumProblem) -> Array:
    """Return powers doubled where one-sided, with negative frequencies where two-sided."""
    power[..., problem.doubled] *= 2
    if problem.bins == problem.half:
        return power
    return np.concatenate([power, power[..., 1 : problem.length - problem.half + 1][..., ::-1]], -1)


class _Compared(NamedTuple):
    """Errors of a block of rows, relative to what is allowed; `_together` joins several.

    Attributes:
        misplaced: counts (3,) of rows, by `assessment.misplaced`.
        worst, probable: largest error of a bin over what is allowed.
        share: largest error over T.
        floor: largest mean square of the errors of sqrt(P), over the row's largest P.
        low, high: smallest and largest P^ / P of strong bins.
    """

    misplaced: Array
    worst: float
    probable: float
    share: float
    floor: float
    low: float
    high: float


def _together(parts: Iterable[_Compared]) -> _Compared:
    """Return the sum, the largest and the smallest values of blocks."""
    found = _Compared(np.zeros(3, int), 0.0, 0.0, 0.0, 0.0, math.inf, 0.0)
    for part in parts:
        found = _Compared(
            found.misplaced + part.misplaced, max(found.worst, part.worst),
            max(found.probable, part.probable), max(found.share, part.share),
            max(found.floor, part.floor), min(found.low, part.low), max(found.high, part.high),
        )  # fmt: skip
    return found


def assess_spectra(
    reference: SpectraReference, result: Array, precision: Precision, *, backend: str, ran: str = ""
) -> Accuracy:
    """Verify every bin and every row of (row, group, bin) by `spectra_bound`.

    ``componentwise_re`` is the largest error over T, ``max_row_error`` the largest relative 2-norm
    error of a row. Where a row is not finite in fp64 it must not be finite. ``noise_floor_db`` is
    the mean over a row's bins of the squared error of sqrt(P), over the row's largest P, of the row
    where it is largest: what errors of the arithmetic leave in a bin beside the strongest line.
    ``scalloping_db``: `scalloping`.
    """
    result = np.asarray(result)
    same_shape(result, reference.power.shape)
    problem, checks = reference.problem, Checks()
    bound = spectra_bound(precision, problem, backend, rows=len(reference.power), ran=ran)
    rows = reference.power.reshape(-1, problem.bins), result.reshape(-1, problem.bins)
    count = len(rows[0])
    by_row = [x.reshape(-1) for x in (reference.total, reference.peak, reference.given)]
    norms, errors, worst, probable = np.zeros((4, count))

    def compare(some: slice) -> _Compared:
        """Fill in the measures of some rows, and return the others."""
        known = finite_lines(rows[0][some], -1)
        places = misplaced(known, finite_lines(rows[1][some], -1))
        truth, got = (np.where(known[:, None], x[some].astype(float), 0) for x in rows)
        total, peak, given = (np.where(known, x[some], 0)[:, None] for x in by_row)
        error = np.abs(got - truth)
        norms[some], errors[some] = (norm_along(x, -1) for x in (truth, error))
        for target, is_worst in ((worst, True), (probable, False)):
            row = bound.of_rows(
                truth.max(axis=-1, initial=0), total[:, 0], given[:, 0], norms[some],
                problem.bins, worst=is_worst,
            )  # fmt: skip
            target[some] = np.where(known & ((total + given)[:, 0] > 0), row, 0)
        # Roundings move no power where there is none.
        allowed = (
            np.where(total + given > 0, bound.of_bins(truth, total, given, peak=of_peak), 0)
            for of_peak in (None, peak)
        )
        first, second = (largest_ratio(error, one) for one in allowed)
        return _Compared(places, first, second, largest_ratio(error, total), *_levels(truth, got))

    with np.errstate(all="ignore"):
        blocks = stretches(count, max(1, _BLOCK_VALUES // max(1, problem.bins)))
        found = _together(each(compare, blocks))
        checks.placed(found.misplaced, "rows", result.dtype)
        for excess, check in ((found.worst, checks.require), (found.probable, checks.expect)):
            check(excess <= 1, f"componentwise: a bin is off by {excess:.3g} times what is allowed")
        whole = norm_of(norms)
        relative = ratio(norm_of(errors), whole)
    return Accuracy(
        error_limit=relative, componentwise_re=found.share,
        max_row_error=largest_ratio(errors, norms),
        measures=measured(
            noise_floor_db=10 * math.log10(found.floor) if found.floor > 0 else None,
            scalloping_db=scalloping(reference.window, precision, found.low, found.high),
        ),
        reference="full", reference_rows=count,
        **checks.conclude(
            relative, ratio(norm_of(worst), whole), ratio(norm_of(probable), whole), precision
        ),
    )  # fmt: skip


def _levels(truth: Array, result: Array) -> tuple[float, float, float]:
    """Return ``floor``, ``low`` and ``high`` of rows that hold power and are finite."""
    largest = truth.max(axis=-1, initial=0)
    some = (largest > 0) & np.isfinite(result).all(axis=-1)
    if not some.any():
        return 0.0, math.inf, 0.0
    exact, found, largest = truth[some], np.maximum(result[some], 0), largest[some]
    floors = np.square(np.sqrt(found) - np.sqrt(exact)).mean(axis=-1) / largest
    strong = exact >= _STRONG * largest[:, None]
    gains = found[strong] / exact[strong]
    return float(floors.max()), float(gains.min()), float(gains.max())


def scalloping(window: Array, precision: Precision, low: float, high: float) -> float | None:
    """Return the loss of a tone midway between two bins over one at a bin's centre, in dB.

    It is that of the window rounded to the precision's type, plus the largest over the smallest of
    P^ / P, of bins above a hundredth of their row's strongest. It is None where no row holds power,
    and for a window without a gain at 0 or midway.

    Args:
        window: the coefficients.
        precision: the precision of the estimate.
        low, high: the smallest and the largest P^ / P.
    """
    w = window.astype(precision.real_output).astype(float)
    turned = w * np.exp(1j * np.pi * np.arange(len(w)) / len(w))
    centre, midway = abs(float(w.sum())), float(abs(turned.sum()))
    if min(centre, midway, low, high) <= 0 or low > high:
        return None
    return 20 * math.log10(centre / midway) + 10 * math.log10(high / low)
