"""Checks that the calls of all operations and of frameworks share."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, SupportsIndex


def check_out(out: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Raise ValueError where ``out`` is given and is not of this shape and type."""
    if out is not None and (tuple(out.shape) != shape or type_name(out) != dtype):
        raise ValueError(
            f"out must have shape {shape} and type {dtype}, "
            f"got {tuple(out.shape)} and {type_name(out)}"
        )


def as_number(value: Any, name: str) -> complex:
    """Return a scalar argument as a complex number. Raises TypeError for what is none, as text."""
    return complex(_converted(complex, value, name, "a number"))


def as_real(value: Any, name: str) -> float:
    """Return a scalar argument as a float. Raises TypeError for what is none, as text."""
    return float(_converted(float, value, name, "a real number"))


def _converted(kind: Callable[[Any], Any], value: Any, name: str, words: str) -> Any:
    try:
        if not isinstance(value, str):
            return kind(value)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} must be {words}, got {value!r}")


def as_axis(axis: Any, rank: int) -> int:
    """Return an axis of x, counted from the first.

    Raises TypeError for no integer, ValueError for one that x, of ``rank`` axes, does not have.
    """
    if not isinstance(axis, SupportsIndex):
        raise TypeError(f"axis must be an integer, got {axis!r}")
    found = index(axis)
    if not -rank <= found < rank:
        raise ValueError(f"axis must be one of x's {rank} axes, got {found}")
    return found % rank


def type_name(x: Any) -> str:
    """Return an array's type for messages, or the ``type_name`` of an object that has one."""
    own = getattr(x, "type_name", None)
    return own if isinstance(own, str) else str(getattr(x, "dtype", type(x).__name__))
