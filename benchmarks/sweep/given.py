"""Cases of given sizes, from a TOML file of tables called by their sweeps.

A table has the arguments of the sweep's case: one of ``hermitian`` those of `systems.SystemCase`.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from argand.precision import EXACT_PRECISIONS, PRECISIONS

from benchmarks.sweep.case import Case

NAMED = Path(__file__).with_name("named_sizes.toml")
"""The sizes that issues name and that pages of operations show."""
_PRECISIONS = [*PRECISIONS, *EXACT_PRECISIONS]


def given_cases(sweep: str, make: Callable[..., Case], path: Path) -> list[Case]:
    """Return the cases of a sweep that a file gives, made by ``make`` of the values of each table.

    Raises OSError for a file that cannot be read, and ValueError that says where the file and what
    is wrong: no TOML, no table of the sweep, an argument that is missing or unknown, or a value.
    """
    try:
        with path.open("rb") as file:
            tables = tomllib.load(file).get(sweep)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(tables, list) or not tables or not all(isinstance(x, dict) for x in tables):
        raise ValueError(f"{path} must have {sweep} = [...], a list of tables")
    found = []
    for number, table in enumerate(tables, 1):
        try:
            found.append(_case(make, table))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, table {number} of {sweep}: {error}") from error
    return found


def _case(make: Callable[..., Case], table: Mapping[str, Any]) -> Case:
    """Return the case of a table. Raises TypeError or ValueError for what it does not take."""
    inspect.signature(make).bind(**table)
    hints = get_type_hints(make.__init__)
    case = make(**{name: _value(name, value, hints[name]) for name, value in table.items()})
    case.given = True
    return case


def _value(name: str, value: Any, hint: Any) -> Any:
    """Return a value of an argument with such an annotation. Raises ValueError for others."""
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(f"{name} must be one of {list(get_args(hint))}, got {value!r}")
        return value
    if name == "precisions":
        if not isinstance(value, list) or not value or any(x not in _PRECISIONS for x in value):
            raise ValueError(f"{name} must be a list of {_PRECISIONS}, got {value!r}")
        return value
    if hint is Fraction and isinstance(value, str):
        return value  # the case reads it
    if type(value) is not int or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
    return value
