"""Origins of the axes of transforms, which the transform in the other direction adds again.

Steps and units of both axes are here too, which tell whether one is that of the other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workflow.data import (
    FIRST,
    LOWEST,
    SELECTED,
    TUNED,
    TUNED_BEFORE,
    Array,
    Coordinate,
    Staged,
    blank,
    is_blank,
    of_conjugates,
)
from workflow.files.input_error import InputError
from workflow.files.units import FACTORS
from workflow.inputs.equal_steps import step_of
from workflow.inputs.selected_offsets import above_selected
from workflow.spectra import spectral_names

RECIPROCAL = {
    "s": "Hz", "ms": "kHz", "us": "MHz", "ns": "GHz", "Hz": "s", "kHz": "ms", "MHz": "us",
    "GHz": "ns", "cycles/sample": "", "": "cycles/sample",
}  # fmt: skip
"""Units of frequency and time; of another unit u it is 1/u."""


def sample_step(staged: Staged) -> tuple[float, str]:
    """Return the step along the samples' last axis and its unit, 1 and none without coordinate."""
    axis = staged.axes["samples"][-1]
    found = staged.coordinates.get(axis)
    if found is None:
        return 1.0, ""
    return step_of(found, f"input.coordinates.{axis}"), found.units


def reciprocal_of(units: str) -> str:
    """Return the unit of an axis that comes out of one in ``units``, and of that one again."""
    if units not in RECIPROCAL and units.startswith("1/"):
        return units.removeprefix("1/").removeprefix("(").removesuffix(")")
    whole = f"({units})" if "/" in units or " " in units else units
    return RECIPROCAL.get(units, f"1/{whole}")


def rate_step(step: float, units: str) -> tuple[float, str]:
    """Return a step of times whose inverse is a frequency, and the unit of that.

    Channels of a filter bank stand within coarse ones and about a carrier, so those of times in
    minutes, hours or days, such as modified Julian dates, are in Hz and not in 1/d.
    """
    if units in FACTORS["s"] and units not in RECIPROCAL:
        return step * FACTORS["s"][units], "Hz"
    return step, reciprocal_of(units)


def counted_from(staged: Staged, name: str, *, inverse: bool) -> tuple[str, Coordinate] | None:
    """Return the name and the value at which the resulting axis ``name`` began before a transform.

    None where nothing says it. An inverse transform takes what a forward one left, also for an axis
    whose name another axis has now, and a forward transform what an inverse one left.
    """
    names = [name, spectral_names.before_transform(staged)] if inverse else [name]
    for key in (f"{SELECTED}{each}" for each in names):
        found = staged.coordinates.get(key)
        if found is None or not found.long_name.endswith(FIRST if inverse else LOWEST):
            continue
        if converted(found, reciprocal_of(sample_step(staged)[1])) is not None:
            return key, found
    return None


def first_entry(staged: Staged, *, inverse: bool) -> dict[str, Coordinate]:
    """Return what stands at the first of the entries that are transformed; nothing for numbers.

    The transform in the other direction adds it again (`counted_from`). For an inverse transform it
    is the frequency that is 0 in the samples, kept where it is not 0. Where an axis of the same
    name was transformed before, that one's stays, and is added to neither. Samples of a whole band
    are again at what they were tuned to. Raises InputError where an axis has its name.
    """
    *others, axis = staged.axes["samples"]
    found, name = staged.coordinates.get(axis), f"{SELECTED}{axis}"
    if name in others:
        raise InputError(
            f"input.axes.samples: an axis has the name {name}, which the product gives to where "
            f"{axis} begins; name that axis otherwise"
        )
    if found is None or found.values.dtype.kind not in "iuf" or not found.values.size:
        return {}
    values = blank((1,), np.float64) if is_blank(found.values) else found.values[:1]
    physical = found.units in FACTORS["s"] or found.units in FACTORS["Hz"]
    before = staged.coordinates.get(name)
    if not values[0] and (inverse or not physical):
        tuned = before is not None and before.long_name == TUNED_BEFORE
        return {name: replace(before, long_name=TUNED)} if before is not None and tuned else {}
    if before is not None and before.long_name.endswith((FIRST, LOWEST)):
        return of_conjugates({name: before})
    one = Coordinate(values, found.units, found.long_name or axis, (name,))
    one = above_selected(before, one)
    return {name: replace(one, long_name=f"{one.long_name}, {LOWEST if inverse else FIRST}")}


def converted(found: Coordinate, units: str) -> Array | None:
    """Return the values in other units; None where these belong to something else."""
    if found.units == units:
        return np.asarray(found.values)
    for factors in FACTORS.values():
        if found.units in factors and units in factors:
            return np.asarray(found.values * (factors[found.units] / factors[units]))
    return None
