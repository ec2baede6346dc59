"""Sweeps: a parameter that takes one value and is given several makes as many cases."""

from __future__ import annotations

import collections.abc
import copy
import enum
import itertools
import math
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel

from workflow.config.annotations import alternatives, models_in
from workflow.config.file_input import FileInput, WorkloadInput
from workflow.config.mistakes import StudyError, show

_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence)
_SCALARS = (int, float, str, bool)
MAX_CASES = 10_000
"""Cases of a study; sweeps multiply, and Snakemake holds every job in memory."""


@dataclass(frozen=True)
class Sweep:
    """The values of one parameter; ``path`` leads to it, through nested mappings."""

    path: tuple[str, ...]
    values: list[Any]


class Expanded(NamedTuple):
    """A case of a workload: its name, its parameters, and the values of what is swept, by key."""

    name: str
    parameters: dict[str, Any]
    swept: dict[str, Any]


def expand(name: str, parameters: Mapping[str, Any], model: type[BaseModel]) -> list[Expanded]:
    """Return the cases that a workload of a config stands for.

    Without a sweep it is the workload itself. Cases come in the order of the values, of several
    sweeps the first parameter varying slowest; parameters are in the order of the model's fields,
    so names do not depend on the order of a config's keys. Raises StudyError for an empty sweep, a
    value given twice, and more than `MAX_CASES` cases.
    """
    sweeps = list(find_sweeps(parameters, [model]))
    mistakes = [f"workloads.{name}.{text}" for text in map(_mistake, sweeps) if text]
    if mistakes:
        raise StudyError(mistakes)
    count = math.prod(len(sweep.values) for sweep in sweeps)
    if count > MAX_CASES:
        raise StudyError(
            [f"workloads.{name}: its sweeps make {count} cases; a study may have {MAX_CASES}"]
        )
    cases = []
    for values in itertools.product(*(sweep.values for sweep in sweeps)):
        case, parts = copy.deepcopy(dict(parameters)), [name]
        for sweep, value in zip(sweeps, values, strict=True):
            _set(case, sweep.path, value)
            parts.append(f"{sweep.path[-1]}{label(value)}")
        swept = {".".join(one.path): value for one, value in zip(sweeps, values, strict=True)}
        cases.append(Expanded("-".join(parts), case, swept))
    return cases


def find_sweeps(
    parameters: Mapping[str, Any], models: Sequence[type[BaseModel]], path: tuple[str, ...] = ()
) -> Iterator[Sweep]:
    """Yield the sweeps among parameters, also of nested ones (``circuit: {qubits: [8, 10]}``)."""
    fields = {name: field for model in models for name, field in model.model_fields.items()}
    for name, field in fields.items():
        value = parameters.get(name)
        if isinstance(value, list) and _is_sweep(name, field.annotation, value):
            yield Sweep((*path, name), value)
        elif isinstance(value, Mapping):
            inner = [m for m in models_in(field.annotation) if not is_input(m)]
            yield from find_sweeps(value, inner, (*path, name))


def is_input(model: type[BaseModel]) -> bool:
    """Return whether a model says where data come from: such parameters are not swept."""
    return issubclass(model, (FileInput, WorkloadInput))


def takes_scalar(annotation: Any) -> bool:
    """Return whether a parameter can be a number, a name or a choice."""
    return any(
        typing.get_origin(member) is typing.Literal
        or (isinstance(member, type) and issubclass(member, (*_SCALARS, enum.Enum)))
        for member in alternatives(annotation)
    )


def is_list(annotation: Any) -> bool:
    """Return whether a parameter is a list by itself, of any length (precisions, sources)."""
    return any(_sequence(member) and not is_tuple(member) for member in alternatives(annotation))


def is_tuple(annotation: Any) -> bool:
    """Return whether a parameter can be a list of so many numbers (alpha: both parts)."""
    return any(
        _sequence(member)
        and typing.get_origin(member) is tuple
        and Ellipsis not in typing.get_args(member)
        for member in alternatives(annotation)
    )


def _sequence(member: Any) -> bool:
    origin = typing.get_origin(member) or member
    return isinstance(origin, type) and issubclass(origin, _LISTS) and not issubclass(origin, str)


def sweep_of(name: str, annotation: Any) -> str:
    """Return the key of a sweep over a parameter, ``values`` or ``lists``.

    It is empty where the parameter has none.
    """
    if name == "kind" or is_list(annotation):
        return ""
    if is_tuple(annotation):
        return "lists"
    return "values" if takes_scalar(annotation) else ""


def _is_sweep(name: str, annotation: Any, value: list[Any]) -> bool:
    """Return whether a list stands for one value, or a list of lists for a list of numbers."""
    lists = bool(value) and all(isinstance(item, list) for item in value)
    return sweep_of(name, annotation) == ("lists" if lists else "values")


def _mistake(sweep: Sweep) -> str:
    key = ".".join(sweep.path)
    if not sweep.values:
        return f"{key}: must be a value or a list of values to sweep over, got an empty list"
    seen: list[tuple[type, Any]] = []
    for value in sweep.values:
        if (type(value), value) in seen:
            return f"{key}: each value of a sweep once, got {show(value)} twice"
        seen.append((type(value), value))
    return ""


def label(value: Any) -> str:
    """Return a value as part of a file's name: 1024, 0.5, T, 1.0_-0.5 for a list of two."""
    if isinstance(value, list):
        return "_".join(map(label, value))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub(r"[^A-Za-z0-9._-]", "", text)


def _set(case: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        case = case[key]
    case[path[-1]] = value
