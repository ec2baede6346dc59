"""Checks that the calls of all operations share."""

from __future__ import annotations

from typing import Any


def check_out(out: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Raise ValueError where ``out`` is given and is not of this shape and type."""
    if out is not None and (tuple(out.shape) != shape or type_name(out) != dtype):
        raise ValueError(
            f"out must have shape {shape} and type {dtype}, "
            f"got {tuple(out.shape)} and {type_name(out)}"
        )


def type_name(x: Any) -> str:
    """Return an array's type for messages, or the ``type_name`` of an object that has one."""
    own = getattr(x, "type_name", None)
    return own if isinstance(own, str) else str(getattr(x, "dtype", type(x).__name__))
