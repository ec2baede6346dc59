"""The assessment of filter banks: spectra against windowed transforms in fp64, and in decibels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision
from argand.channelise.problem import spectra_of

from workflow.accuracy.assessment import (
    Accuracy,
    Checks,
    finite_lines,
    largest_ratio,
    misplaced,
    ratio,
    same_shape,
)
from workflow.accuracy.channelise_bounds import channelise_bound
from workflow.accuracy.lines import SMALLEST_UNIT, norm_along, norm_of
from workflow.accuracy.measures import Measure, measured
from workflow.threads import each, stretches

MEASURES = (
    Measure(
        column="stopband_leakage_db", caption="stop-band leakage", unit="dB",
        what="What a channel holds of what is not its own.",
    ),
    Measure(
        column="gain_ripple_db", caption="gain ripple", unit="dB",
        what="The largest over the smallest gain.",
    ),
)  # fmt: skip
Array = npt.NDArray[Any]
_BLOCK_VALUES = 1 << 18
"""Windowed samples that a thread holds at a time."""
_FINE = 8
"""Points of the response in the T-th part of a channel."""
_MAX_COEFFICIENTS = 1 << 20
"""Largest prototype whose frequency response is computed."""
_STRONG = 0.01
"""Gains are compared of channels above this fraction of the strongest channel's power."""


@dataclass(frozen=True)
class ChanneliseReference:
    """Spectra in fp64.

    Attributes:
        values: (row, spectrum, channel), complex128.
        size: (row, spectrum), sqrt(M) |v| of `channelise_bounds`.
        norm: (row, spectrum), the 2-norm of all M channels.
        coefficients: (T M,) of the prototype.
        channels: M.
        real: whether the samples are; then there are the channels 0 to M / 2.
    """

    values: Array
    size: Array
    norm: Array
    coefficients: Array
    channels: int
    real: bool


def designed(window: Any, channels: int, taps: int) -> Array:
    """Return the coefficients of a window by SciPy."""
    from scipy.signal import firwin

    return np.asarray(firwin(channels * taps, 1 / channels, window=window), np.float64)


def channelise_reference(
    x: Array, coefficients: Array, channels: int, oversampling: Fraction
) -> ChanneliseReference:
    """Return the spectra of (..., time) by SciPy's transforms of windowed samples.

    Spectrum s is every T-th bin of the T M-point transform of h times the samples from s D on,
    times the phase exp(-2 pi i k s D / M): no sum over taps, no rotation.
    """
    from scipy import fft

    length, hop = len(coefficients), int(channels / oversampling)
    taps = length // channels
    rows = x.reshape(-1, x.shape[-1])
    real = x.dtype.kind != "c"
    count = spectra_of(rows.shape[1], length, hop)
    bins = channels // 2 + 1 if real else channels
    values = np.empty((len(rows), count, bins), complex)
    size, norm = np.empty((2, len(rows), count))
    h = coefficients
    k = np.arange(bins)

    def transform(block: tuple[int, slice]) -> None:
        row, some = block
        part = rows[row, some.start * hop : (some.stop - 1) * hop + length]
        part = part.astype(float if real else complex)
        windowed = np.lib.stride_tricks.sliding_window_view(part, length)[::hop] * h
        found = (fft.rfft if real else fft.fft)(windowed)[:, ::taps][:, :bins]
        turns = np.outer(np.arange(some.start, some.stop) * hop % channels, k) % channels
        found = found * np.exp(-2j * np.pi * turns / channels)
        values[row, some] = found
        moduli = np.abs(windowed).reshape(len(windowed), taps, channels).sum(axis=1)
        size[row, some] = math.sqrt(channels) * norm_along(moduli, -1)
        norm[row, some] = _full_norm(found, channels, real)

    step_rows = max(1, _BLOCK_VALUES // length)
    blocks = [(row, some) for row in range(len(rows)) for some in stretches(count, step_rows)]
    with np.errstate(all="ignore"):
        for _ in each(transform, blocks):
            pass
    return ChanneliseReference(values, size, norm, h, channels, real)


def _full_norm(spectra: Array, channels: int, real: bool) -> Array:
    """Return the 2-norm of all channels of (..., channel); real samples have half of them."""
    moduli = np.abs(spectra)
    if real:
        moduli[..., 1 : (channels + 1) // 2] *= math.sqrt(2)
    return norm_along(moduli, -1)


def assess_channelise(
    reference: ChanneliseReference, result: Array, precision: Precision, *, backend: str,
    ran: str = "",
) -> Accuracy:  # fmt: skip
    """Verify every spectrum of (row, spectrum, channel) by `channelise_bound` in the 2-norm.

    ``componentwise_re`` and ``componentwise_im`` are the largest errors over sqrt(M) |v| of their
    spectrum, ``max_row_error`` the largest relative error of a spectrum. A spectrum that is not
    finite in fp64 must not be finite. ``stopband_leakage_db`` and ``gain_ripple_db``: `decibels`.
    """
    result = np.asarray(result)
    same_shape(result, reference.values.shape)
    checks, channels = Checks(), reference.channels
    taps = len(reference.coefficients) // channels
    bound = channelise_bound(
        precision, channels, taps, backend, real=reference.real, ran=ran
    )  # fmt: skip
    known = finite_lines(reference.values, -1)
    with np.errstate(all="ignore"):
        found = misplaced(known, finite_lines(result, -1))
        checks.placed(found, "spectra", result.dtype)
        truth = np.where(known[..., None], reference.values, 0)
        error = np.where(known[..., None], result - truth, 0)
        size, norm = (np.where(known, x, 0) for x in (reference.size, reference.norm))
        errors = _full_norm(error, channels, reference.real)
        # Nothing underflows where all samples are zero, such as those of a channel that is blank.
        allowed = np.where(known & (size > 0), bound.allowed(size, norm), 0)
        worst = largest_ratio(errors, allowed)
        checks.require(
            worst <= 1,
            f"max_row_error: a spectrum is off by {worst:.3g} times what is allowed "
            f"(bound {bound.filtered:.3g} of its products, {bound.transformed:.3g} of it)",
        )
        parts = [
            float(np.where(one == 0, 0, one / size).max(initial=0))
            for one in (np.abs(error.real).max(axis=-1), np.abs(error.imag).max(axis=-1))
        ]
        rows = float(np.where(errors == 0, 0, errors / norm).max(initial=0))
        whole = norm_of(norm)
        relative = ratio(norm_of(errors), whole)
        proved = ratio(norm_of(allowed), whole)
        leakage, ripple = decibels(reference, truth, truth + error, precision)
    return Accuracy(
        error_limit=relative, componentwise_re=parts[0], componentwise_im=parts[1],
        max_row_error=rows, reference="full",
        measures=measured(stopband_leakage_db=leakage, gain_ripple_db=ripple),
        reference_rows=known.size, **checks.conclude(relative, proved, proved, precision),
    )  # fmt: skip


def decibels(
    reference: ChanneliseReference, truth: Array, result: Array, precision: Precision
) -> tuple[float | None, float | None]:
    """Return the leakage of the stop band and the ripple of the gain, in dB.

    Both are those of the prototype, its coefficients rounded to the filter's type, and of the
    arithmetic together. Each channel has a gain, the best fit of the result to the channel in fp64.
    Leakage is a sum of two ratios: the largest power of the prototype's response from a neighbour's
    centre on (1 / M cycles a sample) over that at 0; and the largest mean power of a channel beyond
    its gain times the channel in fp64 over that of the strongest channel. Ripple is a product of
    two ratios of largest to smallest: of the prototype's gains within a quarter of a channel of its
    centre, and of the gains of all channels with more than a hundredth of the strongest's power.

    None where a prototype is too long or has no gain at 0, or where no channel holds power.
    """
    h = reference.coefficients.astype(precision.real_output).astype(float)
    taps = len(h) // reference.channels
    if len(h) > _MAX_COEFFICIENTS or not truth.size or h.sum() == 0:
        return None, None
    response = np.abs(np.fft.rfft(h, _FINE * len(h)) / h.sum())
    stop, passed = response[_FINE * taps :], response[: _FINE * taps // 4 + 1]
    axes = (0, 1)
    unit = float(np.abs(truth).max())
    if not 0 < unit < math.inf or not np.isfinite(result).all():
        return None, None
    unit = max(unit, SMALLEST_UNIT)
    truth, result = truth / unit, result / unit  # so that squares are in range
    power = np.square(np.abs(truth)).mean(axis=axes)
    strongest = float(power.max())
    gain = (truth.conj() * result).mean(axis=axes) / np.where(power > 0, power, 1)
    rest = np.square(np.abs(result - gain * truth)).mean(axis=axes)
    gains = np.abs(gain[power >= _STRONG * strongest])
    leaked = float((stop**2).max(initial=0)) + float(rest.max()) / strongest
    spread = float(passed.max() / passed.min()) * float(gains.max() / gains.min())
    return (10 * math.log10(leaked) if leaked > 0 else None), 20 * math.log10(spread)
