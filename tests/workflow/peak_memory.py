"""The memory that a step of the workflow takes, as Python and NumPy allocate it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import TypeVar

_Found = TypeVar("_Found")


def with_peak(function: Callable[[], _Found]) -> tuple[_Found, int]:
    """Return a function's result, and the most bytes that it held at a time."""
    tracemalloc.start()
    try:
        return function(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
