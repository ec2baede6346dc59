"""The check of voltages before a UVH5 file: sizes, coordinates, units and the date of times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from workflow.config.uvh5_site import Uvh5Site
from workflow.data import (
    OVERLAPPING,
    PLACES,
    SELECTED,
    Array,
    Coordinate,
    Staged,
    is_blank,
    middles,
)
from workflow.files.input_error import InputError
from workflow.files.units import FACTORS, check_arrived, convertible, in_base
from workflow.inputs.dates import date_in, julian_date
from workflow.inputs.selected_offsets import ADDED, APART
from workflow.inputs.selections import PickedAxis
from workflow.readers.polarizations import check_written

_DAY_S = FACTORS["s"]["d"]
_OFF_S = 1.0
"""Seconds that a Julian date of a few digits may be off."""
_FIRST = 1 << 16
"""Integrations of known length whose dates are checked, where samples are many."""


def check_for_uvh5(
    voltages: Staged, site: Uvh5Site, each: int, taken: PickedAxis | None = None
) -> None:
    """Raise InputError where the outline of voltages lacks what a UVH5 file has to say.

    ``each`` is the number of samples of an integration, and ``taken`` says which channels a study
    selects, if not all: where no two are neighbours, the distance between them is not their width.
    """
    channels, polarizations, _, samples = voltages.operands["voltages"].shape
    _check_coordinates(voltages.coordinates, site)
    check_written(voltages.coordinates, polarizations)
    if samples < 2:
        raise InputError(f"uvh5: must be of two samples or more, for their length, got {samples}")
    if channels == 1 and site.channel_width_hz is None:
        raise InputError("uvh5.channel_width_hz: must be given for one channel")
    within = [name for name, one in voltages.coordinates.items() if ADDED in one.long_name]
    if within not in ([], [f"{SELECTED}frequency"]) and site.channel_width_hz is None:
        raise InputError(
            "uvh5.channel_width_hz: must be given where input.select takes one channel within each "
            f"of several, {', '.join(within)}: their distance is no width"
        )
    if OVERLAPPING in voltages.coordinates["frequency"].long_name:
        raise InputError(
            "uvh5: the channels within coarse ones overlap, so that frequencies stand there twice; "
            "take the middle of these by input.select"
        )
    if APART in voltages.coordinates["frequency"].long_name and site.channel_width_hz is None:
        raise InputError(
            "uvh5.channel_width_hz: must be given where input.select takes no neighbouring "
            "channels within coarse ones"
        )
    if taken is not None and site.channel_width_hz is None:
        apart = int(np.abs(np.diff(taken.indices)).min())
        if apart != 1:
            raise InputError(
                "uvh5.channel_width_hz: must be given where input.select takes no neighbouring "
                f"channels, got {apart} entries from one to the next at least"
            )
    times = voltages.coordinates["time"]
    if not is_blank(times.values):
        dates_of(site, replace(times, values=middles(times.values, each)))
    elif times.step is not None:
        first = times.step * each * np.arange(min(samples // each, _FIRST))
        dates_of(site, replace(times, values=first))


def dates_of(site: Uvh5Site, integrations: Coordinate) -> Array:
    """Return the Julian dates of integrations, days as fp64, by which readers tell them apart.

    Raises InputError where two have the same one, and what `start_of` raises.
    """
    seconds = in_base("integration", integrations.values, integrations.units)
    days = np.asarray(start_of(site, integrations) + seconds / _DAY_S)
    if (several := len(np.unique(days))) < len(days):
        apart = np.spacing(days.max()) * _DAY_S
        raise InputError(
            f"uvh5: {len(days)} integrations have {several} Julian dates, because they are "
            f"{np.median(np.abs(np.diff(seconds))):.3g} s apart and such dates in fp64 "
            f"{apart:.2g} s; a larger `integrate` makes fewer of them"
        )
    return days


def _check_coordinates(there: Mapping[str, Coordinate], site: Uvh5Site) -> None:
    """Raise InputError where a coordinate is missing, or in a unit that does not convert."""
    wrong = []
    for name in ("frequency", "time", *PLACES):
        known = convertible(name)
        if name in there and there[name].units not in known:
            wrong.append(f"{name} must be in one of {known}, got {there[name].units!r}")
        elif name not in there and name != "up":
            wrong.append(f"the voltages have no coordinate {name}, in one of {known}")
    if wrong:
        raise InputError(*(f"uvh5: {text}; give it by input.coordinates" for text in wrong))
    hertz = there["frequency"]
    values = in_base("frequency", hertz.values, hertz.units)
    check_arrived("uvh5: frequencies", values, hertz.long_name)
    start_of(site, there["time"])


def start_of(site: Uvh5Site, times: Coordinate) -> float:
    """Return the Julian date that times count from: their own, or else the config's.

    Raises InputError where neither says it, and where both do and it is not the same.
    """
    date, given = date_in(times.long_name), site.julian_date
    known = julian_date(date)
    if known is None:
        if given is None:
            raise InputError(
                f"uvh5.julian_date: must be given, since times count from {date or 'no date'}, and "
                "from none in ISO 8601 and UTC such as 2026-11-28T10:00:00"
            )
        return given
    if given is not None and abs(known - given) * _DAY_S > _OFF_S:
        raise InputError(
            f"uvh5.julian_date: the times count from {date}, which is {known:.6f}, got {given}; "
            "leave it out"
        )
    return known
