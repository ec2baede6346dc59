"""The axes that come out of Fourier transforms and filter banks: names, values and units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from argand import ChanneliseProblem, SpectrumProblem

from workflow.data import (
    FIRST,
    LOWEST,
    MAX_CHECKED,
    SELECTED,
    TAKEN,
    TUNED,
    TUNED_BEFORE,
    Array,
    Coordinate,
    Staged,
    blank,
    is_blank,
)
from workflow.files.input_error import InputError
from workflow.files.units import FACTORS, OF_REAL, OF_SAMPLES, OF_TUNED, OF_UPPER
from workflow.inputs.equal_steps import OFF_STEP
from workflow.integrations import is_summed
from workflow.spectra import spectral_names
from workflow.spectra.spectral_names import CHANNELS
from workflow.spectra.spectral_origins import (
    converted,
    counted_from,
    rate_step,
    reciprocal_of,
    sample_step,
)


def transformed(staged: Staged, *, inverse: bool, shift: bool) -> tuple[str, Coordinate]:
    """Return the name and the values of the axis that the transform of the samples' last one has.

    With N entries a step d apart they are k / (N d): k from 0 to N - 1, of which the upper half are
    the negative ones, or with ``shift`` from -(N // 2) on. Without a coordinate d is one sample.
    What a transform in the other direction began at (`first_entry`) is added. An outline has no
    values (`blank`) where they are many: a check takes no memory for each.

    Raises InputError where the steps of the samples are not equal, where an inverse transform would
    take for the entry of 0 one that is not, and where ``shift`` would put the last entries before
    the one that the transform in the other direction began at.
    """
    axes, samples = staged.axes["samples"], staged.operands["samples"]
    length = samples.shape[-1]
    found = staged.coordinates.get(axes[-1])
    name = spectral_names.of_transform(staged, inverse=inverse)
    first = -(length // 2) if shift else 0
    many = is_blank(samples) and length > MAX_CHECKED
    if found is None and inverse:
        numbers = blank((length,), np.int64) if many else np.arange(first, first + length)
        return name, Coordinate(numbers, "", "sample number", step=1.0)
    step, units = sample_step(staged)
    if inverse and found is not None:
        _check_order(axes[-1], found, step)
    step *= _sense(staged, inverse=inverse)
    reciprocal = reciprocal_of(units)
    key, since = counted_from(staged, name, inverse=inverse) or ("", None)
    if since is not None and shift:
        raise InputError(
            f"shift: the {name} begins at {key} of the samples, and its last entries "
            "would stand before that; leave shift out"
        )
    upper = "negative" if step > 0 else "positive"
    negative = "" if shift else f" ({OF_UPPER} are the {upper} ones)"
    if not inverse:
        negative = f"{_counted_from(staged)}{negative}"
    unknown = since is not None and is_blank(since.values)
    if many or unknown or _is_unknown(found):
        return name, Coordinate(blank((length,), np.float64), reciprocal, f"{name}{negative}")
    values = np.arange(first, first + length, dtype=float)
    values /= length * step  # in place: they are as long as the samples
    if step < 0:
        values += 0.0  # no -0
    if since is None:
        return name, Coordinate(values, reciprocal, f"{name}{negative}")
    values += converted(since, reciprocal)
    said = since.long_name.removesuffix(f", {FIRST if inverse else LOWEST}")
    return name, Coordinate(values, reciprocal, said, step=1 / (length * step))


def _check_order(axis: str, found: Coordinate, step: float) -> None:
    """Raise InputError for entries with 0 in their middle, as ``shift`` orders them.

    An inverse transform takes the first entry for that of 0, and would multiply every other sample
    by -1.
    """
    length = found.values.size
    if length < 2 or _is_unknown(found):
        return
    first = float(found.values.flat[0])
    if abs(first + length // 2 * step) <= OFF_STEP * abs(step):
        raise InputError(
            f"input.coordinates.{axis} begin at {first:.6g} {found.units} with 0 in their middle, "
            "as `shift: true` orders them, and an inverse transform takes the entry of 0 first; "
            "leave `shift` out of the workload that makes them, or write them in that order"
        )


def channels(
    staged: Staged, problem: ChanneliseProblem, *, centre_hz: float | None, shift: bool
) -> tuple[str, dict[str, Coordinate]]:
    """Return the name of the axis of a filter bank's channels, and the coordinates of its two axes.

    The frequency of a channel is its centre, plus ``centre_hz``, or where that is None what was
    tuned to (`TUNED`); the time of a spectrum, where the samples have times, is the middle of its
    samples.

    Raises InputError where times have unequal steps, or no unit of frequency to add a centre to.
    """
    axes = staged.axes["samples"]
    time = axes[-1]
    step, units = sample_step(staged)
    between, reciprocal = rate_step(step, units)
    if centre_hz and reciprocal not in FACTORS["Hz"]:
        raise InputError(
            f"centre_hz: the samples' time must be in one of {list(FACTORS['s'])} "
            "(input.sample_rate_hz, or "
            f"input.coordinates.{time}), got {units!r}"
        )
    name = spectral_names.of_channels(staged)
    coarse = staged.coordinates.get(CHANNELS)
    if (
        centre_hz
        and coarse is not None
        and coarse.units in FACTORS["Hz"]
        and coarse.values.size > 1
    ):
        raise InputError(
            f"centre_hz: the samples are of {coarse.values.size} channels whose frequencies are "
            f"known, from {coarse.values[0]:.6g} {coarse.units} on; leave centre_hz out"
        )
    if centre_hz is None:
        centre_hz = _tuned_hz(staged)
    centre = centre_hz / FACTORS["Hz"].get(reciprocal, 1.0)
    number = problem.channels
    k = _signed(problem.bins, number, problem.real)
    found = staged.coordinates.get(time)
    values = _frequencies(found, k, number * _turned(staged, between, problem.real), centre)
    values = shifted(values) if shift else values
    # Where one of the samples' own channels was selected, its frequency stands beside.
    fine = not centre and (name != CHANNELS or f"{SELECTED}{name}" in staged.coordinates)
    of_samples = f", {OF_SAMPLES}{f', {OF_REAL}' * problem.real}" if fine else ""
    coordinates = {name: Coordinate(values, reciprocal, f"centre of the channel{of_samples}")}
    if found is not None:
        first = (number * problem.taps - 1) / 2
        coordinates[time] = Coordinate(
            _times(found, step, first, problem.hop, problem.spectra), units,
            found.middle_of("spectrum's samples"),
        )  # fmt: skip
    return name, coordinates


def _sense(staged: Staged, *, inverse: bool = False) -> int:
    """Return the sense of frequencies in time samples: -1 where they fall as a wave's rise, else 1.

    It is 1 of a transform along anything but times, and of an inverse one along anything but
    frequencies within channels.
    """
    axis = staged.axes["samples"][-1]
    names = ("frequency", f"{SELECTED}frequency")
    known = [
        staged.coordinates[name] for name in names if name in staged.coordinates and name != axis
    ]
    of_samples = sample_step(staged)[1] in FACTORS["Hz" if inverse else "s"]
    return -1 if of_samples and any(one.is_reversed for one in known) else 1


def _turned(staged: Staged, step: float, real: bool) -> float:
    """Return the step of times whose inverse is that of frequencies of bins.

    Bins of real samples stand for frequencies of either sign, so times may descend.
    """
    return (abs(step) if real else step) * _sense(staged)


def _tuned_hz(staged: Staged) -> float:
    """Return the frequency that was tuned to, 0 where nothing says it or times have no unit."""
    found, units = _selected_frequency(staged), sample_step(staged)[1]
    if found is None or found.long_name != TUNED or reciprocal_of(units) not in FACTORS["Hz"]:
        return 0.0
    return float(found.values[0]) * FACTORS["Hz"][found.units]


def _counted_from(staged: Staged) -> str:
    """Return the suffix of the name of frequencies that count from one beside them."""
    if _tuned_hz(staged):
        return f", {OF_TUNED}"
    found = _selected_frequency(staged)
    of_channel = found is not None and (TAKEN in found.long_name or LOWEST in found.long_name)
    return f", {OF_SAMPLES}" if of_channel and sample_step(staged)[1] in FACTORS["s"] else ""


def _selected_frequency(staged: Staged) -> Coordinate | None:
    """Return the frequency of samples without an axis of it; None for sums over times.

    Powers and visibilities change at frequencies that are no offsets from a wave's.
    """
    if is_summed(staged.coordinates, staged.axes["samples"][-1]):
        return None
    return staged.coordinates.get(f"{SELECTED}frequency")


def segments(
    staged: Staged, problem: SpectrumProblem, *, shift: bool
) -> tuple[str, dict[str, Coordinate]]:
    """Return the name of the axis of an estimate's bins, and the coordinates of its two axes.

    Frequencies are k / (N d) of a step d between samples, in the order of `argand.spectrum`, or
    with ``shift`` from the lowest on. The time of a group is the middle of its samples; without
    times it counts samples.

    Raises InputError where times have unequal steps.
    """
    axes = staged.axes["samples"]
    apart, units = sample_step(staged)
    k = _signed(problem.bins, problem.length, problem.real)
    found = staged.coordinates.get(axes[-1])
    values = _frequencies(found, k, problem.length * _turned(staged, apart, problem.real))
    name = spectral_names.of_spectra(staged)
    first = (problem.length - 1 + (problem.average - 1) * problem.hop) / 2
    times = _times(found, apart, first, problem.hop * problem.average, problem.groups)
    return name, {
        name: Coordinate(
            shifted(values) if shift else values,
            reciprocal_of(units),
            f"{name}{'' if problem.real else _counted_from(staged)}",
        ),
        axes[-1]: Coordinate(
            times, units, (found or Coordinate(times)).middle_of("segments' samples")
        ),
    }


def _signed(bins: int, length: int, real: bool) -> Array:
    """Return the numbers of bins; of complex samples the upper half counts from -length // 2."""
    k = np.arange(bins)
    return k if real else (k + length // 2) % length - length // 2


def _frequencies(found: Coordinate | None, k: Array, length: float, centre: float = 0.0) -> Array:
    """Return centre + k / ``length``, `blank` where the step of the times ``found`` is unknown."""
    unknown = _is_unknown(found) and found is not None and found.step is None
    return blank(k.shape, np.float64) if unknown else np.asarray(centre + k / length)


def _times(found: Coordinate | None, step: float, first: float, hop: int, count: int) -> Array:
    """Return times of samples ``first``, ``first`` + ``hop`` and so on, (count,).

    ``found`` are those of all samples, ``step`` is theirs; an outline's have no values.
    """
    if _is_unknown(found):
        return blank((count,), np.float64)
    start = found.values[0] if found is not None and found.values.size else 0.0
    return np.asarray(start + step * (first + hop * np.arange(count)))


def _is_unknown(found: Coordinate | None) -> bool:
    return found is not None and found.values.size > 0 and is_blank(found.values)


def coordinates_beside(staged: Staged, own: Mapping[str, Coordinate]) -> dict[str, Coordinate]:
    """Return ``own`` of the spectra, and those of the samples' other axes beside them.

    The frequency that samples were tuned to is not 0 in spectra, nor in the samples of their
    channels.
    """
    *others, transformed = staged.axes["samples"]
    kept = {
        name: replace(one, long_name=TUNED_BEFORE) if one.long_name == TUNED else one
        for name, one in staged.coordinates.items()
        if transformed not in one.of(name) and name not in own
        and (set(one.of(name)) & set(others) or name.startswith(SELECTED))
    }  # fmt: skip
    return {**kept, **own}


def shifted(data: Array) -> Array:
    """Return data with entry 0 of the last axis in its middle.

    An outline (`blank`) has one value everywhere and stays.
    """
    return data if is_blank(data) else np.fft.fftshift(data, axes=-1)
