"""Sums of neighbouring samples along time: their times and lengths, and the gaps they span."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from workflow.config.integration import integrated
from workflow.data import Coordinate, middles
from workflow.inputs.equal_steps import first_steps, is_listed, usual_step

_LENGTH = "integration_time"
"""The lengths of sums; behind the axis's name along an axis of another name."""


def integrated_times(
    times: Coordinate, integrate: int | None, axis: str, what: str
) -> dict[str, Coordinate]:
    """Return the middles of sums along ``axis``, and their lengths where there are several times.

    ``what`` is a sum of ``integrate`` neighbours, or of all of them. Raises ValueError where
    samples are left over.
    """
    count, each = integrated(times.values.size, integrate)
    found = {axis: Coordinate(middles(times.values, each), times.units, times.middle_of(what))}
    if times.values.size > 1:
        lengths = np.broadcast_to(each * abs(usual_step(times)), count)
        found[_LENGTH] = Coordinate(lengths, times.units, f"length of the {what}", (axis,))
    return found


def is_summed(coordinates: Mapping[str, Coordinate], axis: str) -> bool:
    """Return whether entries along an axis are sums of a known length, as in `integrated_times`."""
    return any(
        name.endswith(_LENGTH) and one.of(name) == (axis,) for name, one in coordinates.items()
    )


def gap_within(times: Coordinate | None, integrate: int | None, what: str) -> str:
    """Return a remark on times whose sums span a gap, "" for any others.

    A gap is a step of 1.5 usual ones or more, or one back; none is seen where most times stand
    several times. ``what`` is a sum of ``integrate`` neighbours, or of all of them.
    """
    if times is None or not is_listed(times) or not np.median(first_steps(times)):
        return ""
    each, usual = integrated(len(times.values), integrate)[1], usual_step(times)
    apart = np.diff(np.asarray(times.values, np.float64).reshape(-1, each))
    far = (apart * np.sign(usual) >= 1.5 * abs(usual)) | (apart * np.sign(usual) <= 0)
    if not far.any():
        return ""
    number = int(np.argmax(far.any(axis=1)))
    gap = apart[number][np.argmax(far[number])]
    return (
        f"{np.count_nonzero(far.any(axis=1))} of {len(far)} {what}s span gaps: in number {number} "
        f"two neighbours are {gap:.6g} {times.units} apart, where most are {usual:.6g}"
    )
