"""Frequencies that numbers select one after another: of a channel, and of one within it."""

from __future__ import annotations

from dataclasses import replace

from workflow.data import REVERSED, TAKEN, TUNED, TUNED_BEFORE, Coordinate
from workflow.inputs.units import FACTORS, OF_REAL, OF_SAMPLES, OF_TUNED, OFFSETS

_ABOVE = (OF_SAMPLES, OF_TUNED)
_UNKNOWN = (OF_REAL, "the upper half")
"""Parts of the long names of offsets that are from an edge, or of which some stand for others."""


def above_selected(before: Coordinate | None, one: Coordinate) -> Coordinate:
    """Return the one frequency that is selected, as it counts from what was selected ``before``.

    Frequencies of a filter bank, or of a transform, count from 0 of their samples, which is the
    channel that a number selected before, or what they were tuned to: the sum is the frequency as
    that one counts. Anything else is ``one`` as it is.
    """
    said = one.long_name
    if before is None or not {before.units, one.units} <= set(FACTORS["Hz"]):
        return one
    if not any(text in said for text in _ABOVE) or any(text in said for text in _UNKNOWN):
        return one
    if TAKEN not in before.long_name and before.long_name not in (TUNED, TUNED_BEFORE):
        return one
    for text in _ABOVE:
        said = said.replace(f", {text}", "")
    kept = [text for text in (*OFFSETS, *REVERSED) if text in before.long_name]
    above = before.values * (FACTORS["Hz"][before.units] / FACTORS["Hz"][one.units])
    return replace(one, values=one.values + above, long_name=", ".join([said, *kept]))
