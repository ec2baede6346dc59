"""Operands and products with axes and coordinates, as kinds, steps and storage pass them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from workflow.drawn import Drawn, Stretched

Array = npt.NDArray[Any]
PLACES = ("east", "north", "up")
"""Coordinates that say where antennas are."""
SELECTED = "selected_"
"""Prefix of the name of a coordinate that stays when a number selects one entry of its axis."""
TAKEN = "that is selected"
"""End of its long name, before what else is said of it."""
TUNED = "frequency that was tuned to"
"""Long name of the radio frequency that is 0 Hz in complex samples (a coordinate `SELECTED`)."""
TUNED_BEFORE = "frequency that the samples were tuned to"
"""Long name of the same coordinate in spectra, whose own frequencies are relative to it."""
FIRST = "of the first sample that is transformed"
"""End of the long name of what the phases of a spectrum count from, such as a time (`SELECTED`)."""
LOWEST = "of the first entry that is transformed"
"""The same of an inverse transform: the frequency that is 0 in samples made of some of a band."""
BEGUN, ZERO = "at which the spectra begin", "which is 0 in the samples"
"""Ends of the long names in place of `FIRST` and `LOWEST` where no phases count from them."""
ONLY = "the only one, of which nothing is known"
"""End of the long name of inputs' polarization that is number 0 for want of others."""
FALLING = "of samples whose frequencies fall"
UPPER_EDGE = "whose upper edge is frequency 0 of the samples"
OVERLAPPING = "of channels that overlap"
"""End of the long name of frequencies that in part stand there twice, of oversampled channels."""
REVERSED = (FALLING, UPPER_EDGE)
"""Ends of the long names of channels whose samples have the spectrum in reverse."""
MAX_CHECKED = 1 << 20
"""Values of a coordinate that are read, or made of a start and a step, before any job starts."""


@dataclass(frozen=True)
class Coordinate:
    """The values along one axis of an array, for people and plotting programs.

    ``axes`` are those that the values have; where there are none the one of the coordinate's name.
    ``step`` is the distance of entries where it was given: that of values is rounded as they are.
    ``rounding`` is how far values may be off where a file has them in fewer bits than fp64.
    """

    values: Array
    units: str = ""
    long_name: str = ""
    axes: tuple[str, ...] = ()
    step: float | None = None
    rounding: float = 0.0

    @property
    def is_reversed(self) -> bool:
        """Whether samples of these channels have the spectrum in reverse."""
        return any(end in self.long_name for end in REVERSED)

    def of(self, name: str) -> tuple[str, ...]:
        """Return the axes of the values, of a coordinate with this name."""
        return self.axes or (name,)

    def middle_of(self, what: str) -> str:
        """Return the long name of the middles of stretches, with the date that times count from."""
        _, since, date = self.long_name.partition(" since ")
        return f"middle of the {what}{since}{date}"


def places(where: Array) -> dict[str, Coordinate]:
    """Return (antennas, 2 or 3) east, north and up in m, as the antennas' coordinates."""
    return {
        name: Coordinate(along, "m", f"{name} of the array's centre", ("antenna",))
        for name, along in zip(PLACES, where.T, strict=False)
    }


def along(known: Mapping[str, Coordinate], axes: Collection[str]) -> dict[str, Coordinate]:
    """Return the coordinates that stand along these axes alone, and those of selected entries."""
    return {
        name: one
        for name, one in known.items()
        if name.startswith(SELECTED) or set(one.of(name)) <= set(axes)
    }


def of_conjugates(coordinates: Mapping[str, Coordinate]) -> dict[str, Coordinate]:
    """Return coordinates of products of spectra and conjugated ones, which have no common phase.

    So a transform back has lags, which count from 0, and not from the first sample (`FIRST`).
    """
    return {
        name: replace(one, long_name=one.long_name.replace(FIRST, BEGUN).replace(LOWEST, ZERO))
        for name, one in coordinates.items()
    }


def of_powers(coordinates: Mapping[str, Coordinate]) -> dict[str, Coordinate]:
    """Return coordinates without what they say of spectra in the samples of channels (`REVERSED`).

    Powers of samples have the same sense in either, and no phases (`of_conjugates`).
    """
    coordinates = of_conjugates(coordinates)
    said = {name: one.long_name for name, one in coordinates.items()}
    for end in REVERSED:
        said = {name: text.replace(f", {end}", "") for name, text in said.items()}
    return {name: replace(one, long_name=said[name]) for name, one in coordinates.items()}


def summed(
    coordinates: Mapping[str, Coordinate], over: Mapping[str, str], what: str
) -> dict[str, Coordinate]:
    """Return the coordinates of axes that something is the sum over, each along another axis.

    ``over`` names that axis; ``what`` is the sum. Their names begin with ``summed_``.
    """
    return {
        f"summed_{axis}": Coordinate(
            one.values, one.units, f"{one.long_name or axis}, of which the {what} is the sum",
            (along_axis,),
        )
        for axis, along_axis in over.items()
        if (one := coordinates.get(axis)) is not None and one.of(axis) == (axis,)
    }  # fmt: skip


@dataclass(frozen=True)
class Staged:
    """A workload's operands in the kind's canonical axes, and where they came from.

    ``operands`` maps a name to an array, ``axes`` the same name to the names of its axes, and
    ``coordinates`` the name of an axis, or of something else that stands along axes, to its values.
    ``units`` are those of operands that have any. ``attributes`` is provenance: seed, source,
    checksum, counts of non-finite values. All of it is kept in the staged file, and there the
    operands that are not in memory (``drawn``) are arrays like the others.
    """

    operands: Mapping[str, Array]
    axes: Mapping[str, tuple[str, ...]]
    coordinates: Mapping[str, Coordinate] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    drawn: Mapping[str, Drawn | Stretched] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_nonfinite(self) -> bool:
        """Whether an operand has NaN or infinities, which the study lets through."""
        counts = self.attributes.get("nonfinite", {})
        return any(any(found.values()) for found in counts.values())

    def held(self) -> Staged:
        """Return the staged data with all operands in memory."""
        made = {name: operand.held() for name, operand in self.drawn.items()}
        return replace(self, operands={**made, **self.operands}, drawn={})

    def axis_lengths(self) -> dict[str, int]:
        """Return the length of each axis of the operands: the largest, since 1 is broadcast."""
        lengths: dict[str, int] = {}
        for name, data in self.operands.items():
            for axis, length in zip(self.axes[name], data.shape, strict=True):
                lengths[axis] = max(length, lengths.get(axis, 0))
        return lengths

    def whole_along(self, axis: str) -> list[str]:
        """Return the operands that each entry of an axis needs whole: they are not split by it."""
        length = self.axis_lengths().get(axis, 1)
        return [
            name
            for name, data in self.operands.items()
            if (axis, length) not in zip(self.axes[name], data.shape, strict=True)
        ]


@dataclass(frozen=True)
class Product:
    """An array with its axes: a workload's answer as others open it, or an array of a user's file.

    ``axes`` names each axis of ``data`` in order; an axis without an entry in ``coordinates`` is
    numbered. Coordinates of other names stand along these axes, or beside them: where antennas are.
    """

    name: str
    data: Array
    axes: tuple[str, ...]
    coordinates: Mapping[str, Coordinate]
    title: str
    units: str = ""


_MAX_VALUES = 1 << 59
"""Numbers of complex128, whose bytes Python counts in 64 bits with a sign."""


def blank(shape: tuple[int, ...], dtype: npt.DTypeLike, value: int = 0) -> Array:
    """Return an array of one value that takes no memory.

    Raises ValueError for 2^59 values or more.
    """
    if math.prod(map(int, shape)) >= _MAX_VALUES:
        text = " x ".join(map(str, shape))
        raise ValueError(f"an array of {text} is larger than any memory; make it smaller")
    return np.broadcast_to(np.asarray(value, dtype), shape)


def is_blank(values: Array) -> bool:
    """Return whether an array has one value everywhere and no memory for others (`blank`)."""
    return not any(values.strides)


def numbered(values: Array) -> Array:
    """Return 0, 1, ... for the elements of an axis of as many values; blank for an outline's."""
    return blank(values.shape, np.int64) if is_blank(values) else np.arange(values.size)


def middles(values: Array, each: int) -> Array:
    """Return the means of ``each`` neighbours; those of an outline (`blank`) are not summed."""
    rows = values.reshape(-1, each)
    return rows[:, 0] if is_blank(values) else np.asarray(rows.mean(axis=1))


MAX_DRAWN_BYTES = 1 << 30
"""Bytes of a product that a picture is made from: its beginning, where there is more."""


def power(values: Array) -> Array:
    """Return |values|^2 in their real type."""
    return np.asarray(np.square(values.real) + np.square(values.imag))
