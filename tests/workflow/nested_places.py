"""Places of values within nested mappings and lists, for tests that change each of them."""

from __future__ import annotations

from typing import Any


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return every path within nested mappings and lists, that of the whole left out."""
    items: Any = value.items() if isinstance(value, dict) else []
    items = enumerate(value) if isinstance(value, list) else items
    return [place for key, part in items for place in ((*path, key), *places(part, (*path, key)))]
