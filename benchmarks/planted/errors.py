"""The errors that are planted: each is made in a copy of a right result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Place = Any
"""An index into the rows of a result (rows, columns)."""

PLACES = ("largest", "typical", "random")
"""Elements by their magnitude: the largest, the median of those that are not 0, any of those."""
SCALED = (*PLACES, "all")
"""Places whose values are scaled by 1 + 10^-d."""
STEPS = tuple(step / 2 for step in range(33))
"""Every d; at the last an element of fp64 stays as it is."""


def rows_of(result: Array) -> Array:
    """Return (rows, columns) of a result; a single axis is cut into rows, at most columns."""
    if result.ndim > 1:
        return result.reshape(-1, result.shape[-1])
    rows = next(n for n in range(math.isqrt(result.size), 0, -1) if result.size % n == 0)
    return result.reshape(rows, -1)


def places(rows: Array, rng: np.random.Generator) -> dict[str, Place]:
    """Return where the elements of `PLACES` are; none of them is 0."""
    sizes = np.abs(rows).ravel()
    there = np.flatnonzero(sizes)
    ordered = there[np.argsort(sizes[there], kind="stable")]
    chosen = ordered[-1], ordered[len(ordered) // 2], rng.choice(there)
    return {
        name: np.unravel_index(int(index), rows.shape)
        for name, index in zip(PLACES, chosen, strict=True)
    }


def scaled(result: Array, place: Place, d: float) -> Array | None:
    """Return a result with a place of its rows times 1 + 10^-d; None if that changes nothing."""

    def grow(rows: Array) -> None:
        rows[place] *= 1 + 10.0**-d

    return _planted(result, grow)


def planted(result: Array, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """Yield copies of a result with one error each, and the error's name; those that change it."""
    rows = rows_of(result)
    at = places(rows, rng)
    row, other = (rng.permutation(len(rows))[[0, -1]]) if len(rows) > 1 else (0, 0)
    regions: dict[str, Place] = {**at, "row": row, "all": slice(None)}
    smallest = np.unravel_index(int(np.abs(rows).argmin()), rows.shape)
    changes: dict[str, Callable[[Array], None]] = {}
    for where, place in regions.items():
        changes[f"zero {where}"] = _setter(place, lambda values: 0 * values)
        changes[f"NaN {where}"] = _setter(place, lambda values: np.nan * values)
        changes[f"sign {where}"] = _setter(place, lambda values: -values)
    for where, place in at.items():
        changes[f"exponent bit {where}"] = _bit_flip(place, rng, exponent=True)
        changes[f"top fraction bit {where}"] = _bit_flip(place, rng, exponent=False)
    changes["halved all"] = _setter(slice(None), lambda values: values / 2)
    changes["swap elements"] = _swap(at["largest"], smallest)
    changes["swap rows"] = _swap(row, other)
    changes["reversed row"] = _setter(row, lambda values: values[::-1].copy())
    for name, change in changes.items():
        found = _planted(result, change)
        if found is not None:
            yield name, found


def _planted(result: Array, change: Callable[[Array], None]) -> Array | None:
    copy = result.copy()
    with np.errstate(all="ignore"):
        change(rows_of(copy))
        return None if np.array_equal(copy, result) else copy


def _setter(place: Place, made: Callable[[Array], Array]) -> Callable[[Array], None]:
    def change(rows: Array) -> None:
        rows[place] = made(rows[place])

    return change


def _swap(first: Place, second: Place) -> Callable[[Array], None]:
    def change(rows: Array) -> None:
        kept = np.array(rows[first])
        rows[first] = rows[second]
        rows[second] = kept

    return change


def _bit_flip(place: Place, rng: np.random.Generator, *, exponent: bool) -> Callable[[Array], None]:
    """Flip one bit of the larger real part: any of the exponent's, or the fraction's first."""
    draw = float(rng.random())

    def change(rows: Array) -> None:
        value = np.array([rows[place]])
        parts = value.view(value.real.dtype)
        one = parts[np.abs(parts).argmax() :][:1]
        kind = np.finfo(one.dtype)
        bit = kind.nmant + int(draw * kind.iexp) if exponent else kind.nmant - 1
        bits = one.view(f"u{one.itemsize}")
        bits ^= bits.dtype.type(1 << bit)
        rows[place] = value[0]

    return change
