"""The faults that pydantic finds in a value, and the values that it allows, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from workflow.config.annotations import constraints_of, limits, models_in
from workflow.config.text_forms import EXAMPLES

Key = tuple[str | int, ...]


class Mistake:
    """One of pydantic's errors, with what is left of the path to it."""

    def __init__(self, detail: Any, rest: Key) -> None:
        self.detail, self.rest = detail, rest
        self.type: str = detail["type"]
        self.context: Mapping[str, Any] = detail.get("ctx", {})

    def beyond(self) -> Mistake:
        """Return the error as it stands at the next step of its path."""
        return Mistake(self.detail, self.rest[1:])


def fields_of(models: list[type[BaseModel]]) -> dict[str, FieldInfo]:
    """Return the keys that models know, with their fields."""
    return {name: field for model in models for name, field in model.model_fields.items()}


def keys_of(field: FieldInfo | None) -> str:
    """Return the keys of a field that is a mapping, in brackets; empty where it is none."""
    names = fields_of(models_in(field.annotation)) if field is not None else {}
    return f" ({', '.join(names)})" if names else ""


_KINDS_OF_VALUE = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "path": "a path",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping of keys to values",
    "model": "a mapping of keys to values",
    "finite": "a finite number",
}
_LENGTHS = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}
_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}


def what_is_allowed(mistake: Mistake, field: FieldInfo | None) -> str:
    """Return the values that are allowed, for one of pydantic's types of error."""
    context = mistake.context
    if mistake.type in _BOUNDS:
        bound, name = _BOUNDS[mistake.type]
        return (limits(field) if field is not None else "") or f"{bound} {context[name]}"
    if mistake.type == "literal_error":
        words = choices_of(mistake)
        return f"one of {words}" if len(words) > 1 else repr(words[0])
    for ending, (bound, name) in _LENGTHS.items():
        if mistake.type == ending:
            return f"a list of {bound} {context[name]}"
        if mistake.type == f"string_{ending}":
            return f"text of {bound} {context[name]} characters"
    if mistake.type == "string_pattern_mismatch":
        return f"text such as {EXAMPLES.get(context['pattern'], context['pattern'])}"
    if mistake.type == "string_type" and field is not None:
        for pattern in constraints_of(field, "pattern"):
            return f"text such as {EXAMPLES.get(pattern, pattern)}"
    name = mistake.type.split("_")[0]
    if name == "model":
        return _KINDS_OF_VALUE[name] + keys_of(field)
    kind = _KINDS_OF_VALUE.get(name)
    return kind or f"right ({mistake.detail['msg']})"


def choices_of(mistake: Mistake) -> list[str | int]:
    """Return the words and whole numbers of a literal; pydantic quotes its words."""
    found = re.findall(r"'([^']*)'|(-?\d+)", str(mistake.context["expected"]))
    return [int(number) if number else word for word, number in found]
