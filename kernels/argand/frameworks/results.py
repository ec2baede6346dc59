"""Results of calls, with their arrays as another library's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def converted(found: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a result whose arrays are converted: an array, or a named tuple with some.

    What is no array, such as the record of a circuit, stays as it is.
    """
    if isinstance(found, tuple):
        return type(found)(*(convert(x) if hasattr(x, "dtype") else x for x in found))
    return convert(found) if hasattr(found, "dtype") else found
