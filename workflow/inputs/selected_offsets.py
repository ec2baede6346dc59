"""Frequencies that numbers select one after another: of a channel, and of one within it."""

from __future__ import annotations

from dataclasses import replace

from workflow.data import REVERSED, TAKEN, TUNED, TUNED_BEFORE, Coordinate
from workflow.files.units import FACTORS, OF_REAL, OF_SAMPLES, OF_TUNED, OF_UPPER, OFFSETS

_ABOVE = (OF_SAMPLES, OF_TUNED)
_UNKNOWN = (OF_REAL, OF_UPPER)
"""Parts of the long names of offsets that are from an edge, or of which some stand for others."""


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
    if _is_zero_of_samples(before) and _counts_from_samples(one):
        said = one.long_name
        for text in _ABOVE:
            said = said.replace(f", {text}", "")
        above = before.values * (FACTORS["Hz"][before.units] / FACTORS["Hz"][one.units])
        one = replace(one, values=one.values + above, long_name=said)
        kept += OFFSETS
    more = [text for text in kept if text in before.long_name and text not in one.long_name]
    return replace(one, long_name=", ".join([one.long_name, *more])) if more else one


def _is_zero_of_samples(before: Coordinate) -> bool:
    """Return whether a frequency is 0 in the samples beside it."""
    return TAKEN in before.long_name or before.long_name in (TUNED, TUNED_BEFORE)


def _counts_from_samples(one: Coordinate) -> bool:
    said = one.long_name
    return any(text in said for text in _ABOVE) and not any(text in said for text in _UNKNOWN)
