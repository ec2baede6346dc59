"""Covers: which combinations of parameters the short run takes, and which the exhaustive.

Most faults show for one value or for a pair of values, so `make test` runs as few combinations as
hold every pair, or every value where each takes seconds; ``ARGAND_TESTS=all`` (`make test-all`)
runs all of them. Both read the same lists.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from heapq import heapify, heapreplace
from itertools import combinations
from typing import Any, TypeVar

import pytest

RUNS = {"short": False, "all": True}
STRENGTHS = {"each_value": 1, "pairwise": 2}
"""Marks of tests, and how many parameters the short run combines in every way."""
T = TypeVar("T")


def is_exhaustive(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether ``ARGAND_TESTS`` asks for all; raises ValueError for a word that is not in `RUNS`."""
    word = environ.get("ARGAND_TESTS", "short")
    if word not in RUNS:
        raise ValueError(f"ARGAND_TESTS must be one of {list(RUNS)}, got {word!r}")
    return RUNS[word]


EXHAUSTIVE = is_exhaustive()


def fields_of(row: Any) -> Mapping[str, Hashable]:
    """Parameters that cover a row: the fields of a dataclass, the items of a mapping."""
    if is_dataclass(row):
        return {field.name: getattr(row, field.name) for field in fields(row)}
    return dict(row)


def cover(
    rows: Sequence[T],
    features: Callable[[T], Mapping[str, Hashable]] = fields_of,
    strength: int = 2,
) -> list[T]:
    """The rows, in their order, that hold every combination of features that any row holds.

    A combination is that of ``strength`` features. Greedy: each row chosen holds the most that are
    not held yet, the first of equals, and a row whose combinations others hold is dropped again. So
    the cover is small, though not the smallest.
    """
    held: list[set[Any]] = [
        {*combinations(sorted(features(row).items(), key=_name), strength)} for row in rows
    ]
    missing = set().union(*held)
    heap = [(-len(parts), index) for index, parts in enumerate(held)]
    heapify(heap)
    chosen = []
    while missing:
        _, index = heap[0]
        gain = len(held[index] & missing)
        if heapreplace(heap, (-gain, index))[0] == -gain:  # no estimate of another is larger
            chosen.append(index)
            missing -= held[index]
    held_by = Counter(part for index in chosen for part in held[index])
    for index in chosen[:]:  # others, chosen later, may hold all of its parts
        if all(held_by[part] > 1 for part in held[index]):
            chosen.remove(index)
            held_by.subtract(held[index])
    return [rows[index] for index in sorted(chosen)]


def _name(item: tuple[str, Hashable]) -> str:
    return item[0]


def covered(
    rows: Iterable[T],
    features: Callable[[T], Mapping[str, Hashable]] = fields_of,
    strength: int = 2,
) -> list[T]:
    """All rows in the exhaustive run, else their `cover`."""
    return list(rows) if EXHAUSTIVE else cover(list(rows), features, strength)


def examples(count: int) -> int:
    """Return the number of random examples of a property: all, or a fifth of them."""
    return count if EXHAUSTIVE else -(-count // 5)


def keep_cover(metafunc: pytest.Metafunc) -> None:
    """Leave of a marked test's calls, before there are items of them, what the short run makes.

    The features of a call are its parameters, each the one object that its list holds.
    """
    for mark, strength in STRENGTHS.items():
        if metafunc.definition.get_closest_marker(mark):
            metafunc._calls[:] = cover(metafunc._calls, _parameters, strength)


def _parameters(call: Any) -> Mapping[str, Hashable]:
    return {name: id(value) for name, value in call.params.items()}
