"""Entries of an axis that a study selects by their names, such as antennas: their indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from workflow.config.axis_names import among
from workflow.config.file_input import Selection
from workflow.config.mistakes import nearest
from workflow.counted import listed
from workflow.data import Array, Coordinate
from workflow.inputs.selections import Entries, SelectionError

Entry = int | str | list[int | str]


def has_names(entries: Selection) -> bool:
    """Return whether any entry of a selection is a name, or a list with one."""
    given = entries.values() if isinstance(entries, Mapping) else entries
    return any(_is_name(one) for one in given)


def without_names(entries: Selection | None) -> Entries | None:
    """Return a selection of the same axes, with index 0 in place of each name."""
    if entries is None or not has_names(entries):
        return entries  # type: ignore[return-value]  # lists of numbers alone
    return _each(entries, lambda _, one: _with_numbers(one, lambda name: [0]))


def numbered(
    entries: Selection, axes: Sequence[str] | None, along: Callable[[int], list[Coordinate]]
) -> Entries:
    """Return a selection with the index of each name, in a list with those of all that have it.

    Args:
        entries: a selection that fits the data except for its names.
        axes: the names of the axes, where ``entries`` go by them.
        along: returns the coordinates of names along an axis, by its number.

    Raises SelectionError for a name that no entry has, or that several have outside of a list.
    """

    def of_axis(key: int | str, entry: Entry) -> int | str | list[int]:
        number = key if isinstance(key, int) else list(axes or ()).index(among(key, axes or ()))
        what = f"axis {key}" if isinstance(key, int) else key
        there = along(number) if _is_name(entry) else []
        one = not isinstance(entry, list)
        return _with_numbers(entry, lambda name: _numbers(name, what, there, one=one))

    return _each(entries, of_axis)


def are_names(values: Array) -> bool:
    """Return whether values of an axis are text, or whole numbers such as those of antennas."""
    return values.ndim == 1 and values.dtype.kind in "Uiu"


def _is_name(entry: Entry) -> bool:
    if isinstance(entry, list):
        return any(isinstance(one, str) for one in entry)
    return isinstance(entry, str) and ":" not in entry


def _each(entries: Selection, made: Callable[[int | str, Entry], int | str | list[int]]) -> Entries:
    if isinstance(entries, Mapping):
        return {key: made(key, one) for key, one in entries.items()}
    return [made(number, one) for number, one in enumerate(entries)]


def _with_numbers(entry: Entry, numbers: Callable[[str], list[int]]) -> int | str | list[int]:
    """Return an entry with the index of a name, in a list with those of all that have it."""
    if isinstance(entry, list):
        each = [numbers(one) if isinstance(one, str) else [one] for one in entry]
        return [number for found in each for number in found]
    return numbers(entry)[0] if isinstance(entry, str) and _is_name(entry) else entry


def _numbers(name: str, axis: str, along: list[Coordinate], *, one: bool) -> list[int]:
    """Return the entries of an axis that have a name, by one coordinate; with ``one`` the only."""
    found = [np.flatnonzero(each.values.astype(str) == name).tolist() for each in along]
    found = [places for places in found if places]
    if not along:
        raise SelectionError(
            f"has no names along {axis}, got {name!r}; an index, a range such as '0:4', or names "
            "in input.coordinates"
        )
    if not found:
        names = [str(value) for each in along for value in dict.fromkeys(each.values)]
        raise SelectionError(
            f"has the names {listed(names)} along {axis}, got {name!r}{nearest(name, names)}"
        )
    if any(places != found[0] for places in found):
        raise SelectionError(
            f"has {name!r} as names of different kinds along {axis}, at "
            f"{' and at '.join(listed(places) for places in found)}; take them by their indices"
        )
    if one and len(found[0]) > 1:
        raise SelectionError(
            f"has {name!r} along {axis} at {listed(found[0])}; a list takes all of them, "
            f"[{name}], an index one"
        )
    return found[0]
