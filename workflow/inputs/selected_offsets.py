"""Frequencies that numbers select one after another: of a channel, and of one within it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from workflow.data import (
    REVERSED,
    SELECTED,
    TAKEN,
    TUNED,
    TUNED_BEFORE,
    Array,
    Coordinate,
    blank,
    is_blank,
)
from workflow.files.units import FACTORS, OF_REAL, OF_SAMPLES, OF_TUNED, OF_UPPER, OFFSETS
from workflow.inputs.selections import PickedAxis

_ABOVE = (OF_SAMPLES, OF_TUNED)
_UNKNOWN = (OF_REAL, OF_UPPER)
"""Parts of the long names of offsets that count from an edge, or that in part stand for others."""
_UPPER = re.compile(rf" \({OF_UPPER} are the \w+ ones\)")
ADDED = "which is in the frequencies of channels"
"""End of the long name of a frequency that was added to those along an axis (`of_waves`)."""

APART = "of channels that are no neighbours"
"""End of the long name of frequencies whose distance is no width of their channels."""


def above_selected(before: Coordinate | None, one: Coordinate) -> Coordinate:
    """Return the one frequency that is selected, as it counts from what was selected ``before``.

    Frequencies of a filter bank, or of a transform, count from 0 of their samples, which is the
    channel that a number selected before, or what they were tuned to: the sum is the frequency as
    that one counts. Any other stays as it is. Where frequencies fall in the samples of the channel
    before, they fall in those of the channel within it, and its long name says so too.
    """
    if before is None or not {before.units, one.units} <= set(FACTORS["Hz"]):
        return one
    kept = list(REVERSED)
    if _is_zero_of_samples(before) and counts_from_samples(one):
        one = replace(one, values=raised(one, before), long_name=_without_zero(one.long_name))
        kept += OFFSETS
    more = [text for text in kept if text in before.long_name and text not in one.long_name]
    return replace(one, long_name=", ".join([one.long_name, *more])) if more else one


def of_waves(coordinates: Mapping[str, Coordinate]) -> dict[str, Coordinate]:
    """Return coordinates whose ``frequency`` is that of waves, not of the channels about it.

    A number may select one channel within each of the axis's channels, or the coarse channel whose
    inner channels the axis has. The one that is selected is added, and its long name says so
    (`ADDED`). Frequencies that count from an edge, or that in part stand for others, stay as they
    are.
    """
    found = dict(coordinates)
    along = found.get("frequency")
    hertz = FACTORS["Hz"]
    if along is None or along.of("frequency") != ("frequency",) or along.units not in hertz:
        return found
    for name in [name for name in found if name.startswith(SELECTED)]:
        one = found[name]
        known = one.units in hertz and one.values.size == 1 and not is_blank(one.values)
        if not known or not _is_zero_of_samples(one):
            continue
        if counts_from_samples(one):
            along = replace(along, values=raised(along, one))
        elif counts_from_samples(along):
            along = above_selected(one, along)
        else:
            continue
        found[name] = replace(one, long_name=f"{_without_zero(one.long_name)}, {ADDED}")
    return {**found, "frequency": along}


def of_one_half(one: Coordinate, taken: PickedAxis) -> Coordinate:
    """Return a coordinate of a whole axis as what is ``taken`` of it tells.

    The frequencies in the upper half of a transform stand for others below 0 (`OF_UPPER`). Where
    all that are taken lie in one half they get their own values, and the long name no longer says
    so. That is known of an axis from 0 on in equal steps.
    """
    values = one.values
    if OF_UPPER not in one.long_name or values.ndim != 1 or not taken.length:
        return one
    lower, indices = (values.size + 1) // 2, taken.indices
    if int(np.min(indices)) < lower <= int(np.max(indices)):
        return one
    if not is_blank(values):
        steps = np.diff(values[:: max(1, values.size >> 16)])  # of many values some tell
        if values[0] != 0 or not np.allclose(steps, steps[:1], rtol=1e-6, atol=0):
            return one
        if int(np.max(indices)) >= lower:
            values = values - (values[-1] + values[1])
    return replace(one, values=values, long_name=without_upper(one.long_name))


def without_upper(long_name: str) -> str:
    """Return a long name without what it says of the upper half of an axis (`OF_UPPER`)."""
    return _UPPER.sub("", long_name)


def raised(one: Coordinate, offset: Coordinate) -> Array:
    """Return values with an offset added, in their unit; those of an outline (`blank`) stay."""
    if is_blank(one.values) or is_blank(offset.values):
        return blank(one.values.shape, np.float64)
    factors = FACTORS["Hz"]
    return one.values + offset.values * (factors[offset.units] / factors[one.units])


def _without_zero(long_name: str) -> str:
    """Return a long name without what frequencies count from."""
    for text in _ABOVE:
        long_name = long_name.replace(f", {text}", "")
    return long_name


def _is_zero_of_samples(before: Coordinate) -> bool:
    """Return whether a frequency is 0 in the samples beside it."""
    said = before.long_name
    return (TAKEN in said and ADDED not in said) or said in (TUNED, TUNED_BEFORE)


def counts_from_samples(one: Coordinate) -> bool:
    """Return whether frequencies are offsets from that of the channel that their samples are of."""
    said = one.long_name
    return any(text in said for text in _ABOVE) and not any(text in said for text in _UNKNOWN)
