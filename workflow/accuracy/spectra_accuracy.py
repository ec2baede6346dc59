"""The assessment of spectral estimates: means of |X|^2 against SciPy in fp64, and in decibels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision, SpectrumProblem

from workflow.accuracy.judgement import Accuracy, Checks, finite_lines, ratio, same_shape
from workflow.accuracy.measures import Measure, measured
from workflow.accuracy.spectra_bounds import SpectraBound, spectra_bound
from workflow.threads import each

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
    """

    problem: SpectrumProblem
    window: Array
    power: Array
    total: Array
    peak: Array


def spectra_reference(
    x: Array, window: Array, problem: SpectrumProblem, *, scaling: str, sample_rate: float
) -> SpectraReference:
    """Return the means of (..., time) by SciPy's transforms of windowed segments in fp64.

    Sums over segments are added in fp64, and the scale is a factor in the end, as in scipy.signal.
    """
    rows = x.reshape(-1, x.shape[-1])
    wide = float if problem.real else complex
    w = np.asarray(window, float)
    scale = 1 / (sample_rate * (w @ w)) if scaling == "density" else 1 / w.sum() ** 2
    power = np.zeros((len(rows), problem.groups, problem.half))
    total, peak = np.zeros((2, len(rows), problem.groups))

    def sums(block: tuple[int, int, int]) -> tuple[Array, Array, Array]:
        """Of whole groups of segments, or of a part of one."""
        from scipy import fft

        row, first, count = block
        begin = first * problem.step
        part = rows[row, begin : begin + (count - 1) * problem.step + problem.length].astype(wide)
        views = np.lib.stride_tricks.sliding_window_view(part, problem.length)[:: problem.step]
        found = (fft.rfft if problem.real else fft.fft)(views * w)
        squares = np.square(found.real) + np.square(found.imag)
        grouped = squares.reshape(-1, min(problem.average, count), problem.half)
        return grouped.sum(axis=1), _both_sides(grouped, problem).sum(axis=1), _peaks(grouped)

    blocks = _blocks(problem, len(rows))
    with np.errstate(all="ignore"):
        for (row, first, _), found in zip(blocks, each(sums, blocks), strict=True):
            group = first // problem.average
            some = slice(group, group + len(found[0]))
            for target, added in zip((power, total, peak), found, strict=True):
                target[row, some] += added
        for target in (power, total, peak):
            target *= scale / problem.average
    return SpectraReference(problem, w, _as_asked(power, problem), total, peak)


def _blocks(problem: SpectrumProblem, rows: int) -> list[tuple[int, int, int]]:
    """Row, first segment and number of segments: of whole groups, or of a part of one."""
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


def _both_sides(squares: Array, problem: SpectrumProblem) -> Array:
    """The sum over all N bins of (..., computed bins)."""
    found = squares.sum(axis=-1)
    if problem.real:
        found = found + squares[..., 1 : (problem.length + 1) // 2].sum(axis=-1)
    return np.asarray(found)


def _peaks(squares: Array) -> Array:
    return np.asarray(squares.max(axis=-1).sum(axis=-1))


def _as_asked(power: Array, problem: SpectrumProblem) -> Array:
    """Doubled where one-sided, with the negative frequencies of real samples where two-sided."""
    power[..., problem.doubled] *= 2
    if problem.bins == problem.half:
        return power
    return np.concatenate([power, power[..., 1 : problem.length - problem.half + 1][..., ::-1]], -1)


def assess_spectra(
    reference: SpectraReference, result: Array, precision: Precision, *, backend: str, ran: str = ""
) -> Accuracy:
    """Verify every bin and every row of (row, group, bin) by `spectra_bound`.

    ``componentwise_re`` is the largest error over T, ``max_row_error`` the largest relative 2-norm
    error of a row. Where a row is not finite in fp64 it must not be finite. ``noise_floor_db`` and
    ``scalloping_db``: `decibels`.
    """
    result = np.asarray(result)
    same_shape(result, reference.power.shape)
    problem, checks = reference.problem, Checks()
    bound = spectra_bound(
        precision, problem.length, problem.average, backend, real=problem.real,
        onesided=problem.onesided, groups=max(1, reference.total.size),
        bins=max(1, reference.power.size), ran=ran,
    )  # fmt: skip
    known = finite_lines(reference.power, -1)
    with np.errstate(all="ignore"):
        misplaced = int(np.count_nonzero(known != finite_lines(result, -1)))
        checks.require(misplaced == 0, f"{misplaced} rows are finite or not where P is the other")
        truth = np.where(known[..., None], reference.power, 0)
        got = np.where(known[..., None], result.astype(float), 0)
        error = np.abs(got - truth)
        total, peak = (np.where(known, x, 0) for x in (reference.total, reference.peak))
        _check_bins(checks, bound, error, truth, total, peak)
        norms, errors = (np.linalg.norm(x, axis=-1) for x in (truth, error))
        worst, probable = (
            np.where(known, _row_bound(bound, truth, total, norms, worst=worst), 0)
            for worst in (True, False)
        )
        whole = _norm(norms)
        relative = ratio(_norm(errors), whole)
        share = np.where(error == 0, 0, error / total[..., None])
        rows = np.where(errors == 0, 0, errors / norms)
        floor, scalloping = decibels(reference.window, truth, got, precision)
    return Accuracy(
        error_limit=relative, componentwise_re=float(share.max(initial=0)),
        max_row_error=float(rows.max(initial=0)),
        measures=measured(noise_floor_db=floor, scalloping_db=scalloping),
        reference="full", reference_rows=known.size,
        **checks.conclude(
            relative, ratio(_norm(worst), whole), ratio(_norm(probable), whole), precision
        ),
    )  # fmt: skip


def _check_bins(
    checks: Checks, bound: SpectraBound, error: Array, truth: Array, total: Array, peak: Array
) -> None:
    total, peak = total[..., None], peak[..., None]
    for of_peak, check in ((None, checks.require), (peak, checks.expect)):
        # Without any power there is none that roundings move.
        allowed = np.where(total > 0, bound.of_bins(truth, total, peak=of_peak), 0)
        excess = np.where(error == 0, 0, error / allowed)
        excess[np.isnan(excess)] = np.inf
        found = float(excess.max(initial=0))
        check(found <= 1, f"componentwise: a bin is off by {found:.3g} times what is allowed")


def _row_bound(
    bound: SpectraBound, truth: Array, total: Array, norms: Array, *, worst: bool
) -> Array:
    largest = truth.max(axis=-1, initial=0)
    return np.asarray(bound.of_rows(largest, total, norms, truth.shape[-1], worst=worst))


def _norm(x: Array) -> float:
    unit = float(np.abs(x).max(initial=0))
    return unit * float(np.linalg.norm((x / unit).reshape(-1))) if 0 < unit < math.inf else unit


def decibels(
    window: Array, truth: Array, result: Array, precision: Precision
) -> tuple[float | None, float | None]:
    """Return the noise floor of the arithmetic and the scalloping loss, in dB.

    Noise floor: the mean over a row's bins of the squared error of sqrt(P), over the row's largest
    P, of the row where it is largest: what errors of the arithmetic leave in a bin beside the
    strongest line. Scalloping: what a tone midway between two bins loses, over one at a bin's
    centre, by the window rounded to the precision's type; plus the largest over the smallest of
    P^ / P, of bins above a hundredth of their row's strongest.

    None where nothing is off or no row holds power, and for a window without a gain at 0.
    """
    largest = truth.max(axis=-1, initial=0)
    some = (largest > 0) & np.isfinite(result).all(axis=-1)
    if not some.any():
        return None, None
    exact, found, largest = truth[some], np.maximum(result[some], 0), largest[some]
    floors = np.square(np.sqrt(found) - np.sqrt(exact)).mean(axis=-1) / largest
    floor = float(floors.max())
    strong = exact >= _STRONG * largest[:, None]
    gains = found[strong] / exact[strong]
    w = window.astype(precision.real_output).astype(float)
    turned = w * np.exp(1j * np.pi * np.arange(len(w)) / len(w))
    centre, midway = abs(float(w.sum())), float(abs(turned.sum()))
    spread = float(gains.max() / gains.min()) if gains.min() > 0 else math.inf
    lost = (centre / midway) ** 2 * spread if min(centre, midway) > 0 else math.inf
    return (
        10 * math.log10(floor) if floor > 0 else None,
        10 * math.log10(lost) if 0 < lost < math.inf else None,
    )
