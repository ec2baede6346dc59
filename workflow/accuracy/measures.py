"""Measures that the results of one kind have beside the common ones: columns of records and tables.

A module of this folder whose name ends in ``_accuracy`` declares its own as ``MEASURES``. An
`Accuracy` has their values in ``measures`` by the name of the column, and `workflow.records` and
`workflow.tables` find the columns here: a measure is named nowhere else.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

Value = float | str
"""Kinds of a measure."""


def _itself(value: float) -> float:
    return value


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure of one kind's results, and its column.

    Attributes:
        column: its name in records and in tables for programs.
        caption: the column's heading in tables for people, without the unit.
        what: what it measures, in a sentence.
        unit: empty for a ratio or a relative error.
        scientific: whether tables for people write it with an exponent, as they do errors.
        together: returns the value of a whole result from those of its parts.
        shown: what tables for people show of a value.
        text: whether values are text, which tables for people leave out.
        at: the column of the measure that says where this one is taken, such as at which SNR.
    """

    column: str
    caption: str
    what: str
    unit: str = ""
    scientific: bool = False
    together: Callable[[Iterable[Any]], Any] = max
    shown: Callable[[float], float] = _itself
    text: bool = False
    at: str = ""

    def captioned(self, values: Mapping[str, Value]) -> str:
        """Return the caption among the measures of a result, such as "EVM at 30 dB"."""
        if not self.at:
            return self.caption
        where = every_measure()[self.at]
        value = values.get(self.at)
        place = f"{value:g} {where.unit}" if isinstance(value, float) else f"the {where.caption}"
        return f"{self.caption} at {place}"

    def heading(self, values: Mapping[str, Value]) -> str:
        """Return the caption among the measures of a result, and the unit."""
        caption = self.captioned(values)
        return f"{caption} ({self.unit})" if self.unit else caption


@cache
def every_measure() -> Mapping[str, Measure]:
    """Return the measures of all kinds by their column, in the order of columns.

    Raises ValueError where two have one column.
    """
    found: dict[str, Measure] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules([str(Path(__file__).parent)])):
        if not module.endswith("_accuracy"):
            continue
        for measure in getattr(import_module(f"workflow.accuracy.{module}"), "MEASURES", ()):
            if measure.column in found:
                raise ValueError(f"workflow.accuracy.{module}: {measure.column} is there already")
            found[measure.column] = measure
    return found


def of_one_result(values: Mapping[str, Value]) -> list[Measure]:
    """Return the measures of results of one kind that people are shown.

    Those that say where others are taken stand in the captions of these.
    """
    known = [one for column, one in every_measure().items() if column in values and not one.text]
    places = {one.at for one in known}
    return [one for one in known if one.column not in places]


def measured(**values: Value | None) -> dict[str, Value]:
    """Return the values that there are: what does not apply, None here, has no value."""
    return {column: value for column, value in values.items() if value is not None}


def of_parts(parts: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    """Return the measures of a whole from those of its parts; one that a part lacks has no value.

    Raises ValueError for a measure that no kind declares.
    """
    first, *others = parts
    known, found = every_measure(), dict[str, Value]()
    for column in first:
        if column not in known:
            raise ValueError(f"a measure must be one of {list(known)}, got {column!r}")
        if all(column in other for other in others):
            found[column] = known[column].together([part[column] for part in (first, *others)])
    return found
