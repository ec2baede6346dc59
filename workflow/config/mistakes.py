"""Mistakes in a config, said to the person who wrote it.

Pydantic says where a value failed and why, for each member of a union apart. Here that becomes one
line a mistake: the key, what is allowed, what was found.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from workflow.config.allowed import Key, Mistake, choices_of, fields_of, keys_of, what_is_allowed
from workflow.config.annotations import models_within
from workflow.storage.failures import printable


class StudyError(ValueError):
    """The mistakes of a study, one a line.

    A config's own text may hold line breaks and a terminal's control sequences; they are escaped.
    """

    def __init__(
        self, mistakes: Sequence[str], rest: Any = None, wrong: Sequence[str] = ()
    ) -> None:
        """Take mistakes, and as ``rest`` the study without ``wrong`` workloads, if there is one."""
        self.rest, self.wrong = rest, wrong
        self.mistakes = list(dict.fromkeys(map(printable, mistakes)))
        super().__init__("\n".join(self.mistakes))


_MEANT = {
    "gpu": "cuda", "float64": "fp64", "complex128": "fp64", "float32": "fp32", "complex64": "fp32",
    "float16": "fp16", "bfloat16": "bf16",
}  # fmt: skip
"""Other programs' words for ours, where the letters alone would not find ours."""


def nearest(found: str, known: Iterable[str]) -> str:
    """Return a hint at the known word nearest to the one that was found, in any case of letters.

    It is empty where none is near.
    """
    words = {word.lower(): word for word in known}
    near = difflib.get_close_matches(_MEANT.get(found.lower(), found.lower()), words, 1)
    return f"; did you mean {words[near[0]]!r}?" if near else ""


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the message about a key that does not exist."""
    known = list(known)
    return f"unknown key{nearest(key, known)} (known: {', '.join(known)})"


def beside_products(key: str, products: Mapping[str, str]) -> str:
    """Return the message about a key of files in an input whose operands are all products."""
    found = ", ".join(f"{name} is the product of {one}" for name, one in products.items())
    return (
        f"{key} must not be given where no operand is a dataset: {found}; beside products select, "
        f"axes, coordinates and units are allowed; {key} goes where data come in, into the input "
        "of the workload that reads them from a file"
    )


def attach(at: Key, text: str, known: Iterable[str]) -> str:
    """Return a mistake at a key of the config.

    Text that itself starts with one of the known keys, or with the last one of ``at``, goes on from
    there: it was written where only the end of the path is known.
    """
    if not at:
        return text
    found = re.match(r"\w+", text)
    first = found[0] if found else None
    if first in set(known):
        return ".".join((*map(str, at), text))
    if first == at[-1]:
        return ".".join((*map(str, at[:-1]), text))
    return f"{'.'.join(map(str, at))}: {text}"


def messages(
    error: ValidationError, model: type[BaseModel], raw: Any, at: Key, extra: Sequence[str] = ()
) -> list[str]:
    """Return the mistakes in a validation error, in the order of the config's keys.

    Args:
        error: the error from validating ``raw`` against ``model``.
        at: where ``raw`` stands in the config.
        extra: keys that are known beside the model's own.
    """
    found = [Mistake(detail, detail["loc"]) for detail in error.errors(include_url=False)]
    # Whatever the walk through pydantic's paths may miss, an error is never without a line.
    lines = _lines_of(found, [model], None, raw, at, extra)
    return lines or [attach(at, f"{item.detail['msg']} at {item.rest}", ()) for item in found]


def _lines_of(
    found: list[Mistake],
    models: list[type[BaseModel]],
    field: FieldInfo | None,
    raw: Any,
    at: Key,
    extra: Sequence[str] = (),
    union: Sequence[type[BaseModel]] = (),
) -> list[str]:
    """Return the mistakes of one value, which any of a ``union`` might be, and of what it holds."""
    # Entries that are wrong count as missing ones: a list is too short where nothing else is wrong.
    if any(mistake.rest for mistake in found):
        found = [mistake for mistake in found if mistake.rest or mistake.type != "too_short"]
    here = [mistake for mistake in found if not mistake.rest]
    if here:
        return [attach(at, _sentence(here, field, raw), fields_of(models))]
    inside: dict[str | int, list[Mistake]] = {}
    branches: dict[str | int, list[Mistake]] = {}
    for mistake in found:
        target = inside if _is_key(mistake, raw) else branches
        target.setdefault(mistake.rest[0], []).append(mistake.beyond())
    lines = []
    if branches:
        lines += _lines_of_union(branches, models, field, raw, at)
    absent = [key for key, mistakes in inside.items() if _is(mistakes, "missing")]
    if isinstance(raw, list) and absent:
        lines.append(attach(at, f"must be a list of {int(max(absent)) + 1}, got {show(raw)}", ()))
        inside = {key: mistakes for key, mistakes in inside.items() if key not in absent}
    known = [*fields_of(models), *extra]
    strangers = [str(key) for key, mistakes in inside.items() if _is(mistakes, "extra_forbidden")]
    lines += [attach((*at, key), _unknown(key, known, union, raw), ()) for key in strangers]
    hinted = {near for key in strangers for near in difflib.get_close_matches(key, known, 1)}
    for key, mistakes in inside.items():
        # A misspelt key is missing too: that is one mistake, reported already.
        if key in strangers or (key in hinted and _is(mistakes, "missing")):
            continue
        below = fields_of(models).get(str(key))
        value = raw[key] if _holds(raw, key) else None
        inner = models_within(below.annotation) if below is not None else models
        lines += _lines_of(mistakes, inner, below, value, (*at, key))
    return lines


def _unknown(key: str, known: Sequence[str], union: Sequence[type[BaseModel]], raw: Any) -> str:
    """Return the message about a key that the meant member of a union does not have.

    Where another member has it, or no member has any key of the mapping, all keys that go together
    are named.
    """
    having = {name for one in union if key in one.model_fields for name in one.model_fields}
    beside = [str(name) for name in raw if name in known and name not in having]
    groups = "; or ".join(", ".join(one.model_fields) for one in union)
    if having and beside:
        return f"must not be given beside {' and '.join(beside)} (together: {groups})"
    if len(union) > 1 and not any(_likeness(one, raw) for one in union):
        return f"unknown key (known: {groups})"
    return unknown_key(key, known)


def _is(mistakes: list[Mistake], kind: str) -> bool:
    """Return whether errors at a key are about the key itself."""
    return mistakes[0].type == kind and not mistakes[0].rest


def _holds(raw: Any, key: str | int) -> bool:
    if isinstance(raw, Mapping):
        return key in raw
    return isinstance(raw, list) and isinstance(key, int) and key < len(raw)


def _is_key(mistake: Mistake, raw: Any) -> bool:
    """Return whether a path's next step is a key of the config, not the name of a union's member.

    A missing key is not in the config: it is a key where the path ends with it.
    """
    key = mistake.rest[0]
    absent = mistake.type == "missing" and len(mistake.rest) == 1
    return _holds(raw, key) or absent


def _lines_of_union(
    branches: dict[str | int, list[Mistake]],
    models: list[type[BaseModel]],
    field: FieldInfo | None,
    raw: Any,
    at: Key,
) -> list[str]:
    """Return the mistakes of the member that was meant, or all that would have been allowed."""
    meant = max(models, key=lambda member: _likeness(member, raw), default=None)
    if meant is not None and isinstance(raw, Mapping):
        found = [branches[tag] for tag in branches if meant.__name__ in str(tag)]
        if found:
            return _lines_of(found[0], [meant], field, raw, at, union=models)
    inside = [found for found in branches.values() if any(mistake.rest for mistake in found)]
    if inside:
        return _lines_of(inside[0], models, field, raw, at)
    every = [mistake for found in branches.values() for mistake in found]
    return [attach(at, _sentence(every, field, raw), ())]


def _likeness(model: type[BaseModel], raw: Any) -> float:
    """Return how many keys of a mapping a model knows, those that nearly fit counting half."""
    if not isinstance(raw, Mapping):
        return 0
    known = list(model.model_fields)
    return sum(1 if key in known else 0.5 * bool(nearest(str(key), known)) for key in raw)


def _sentence(found: list[Mistake], field: FieldInfo | None, raw: Any) -> str:
    """Return the mistake of a value, from the errors that concern the value itself."""
    for mistake in found:
        if mistake.type == "value_error":
            return str(mistake.context["error"])
        if mistake.type == "missing":
            return f"missing{_purpose(field)}"
    allowed = list(dict.fromkeys(what_is_allowed(mistake, field) for mistake in found))
    hint = _number_hint(found, raw) or _word_hint(found, raw)
    return f"must be {' or '.join(allowed)}, got {show(raw)}{hint}"


def _purpose(field: FieldInfo | None) -> str:
    text = field.description if field is not None else None
    if not text:
        return ""
    return f"; it is needed: {text[0].lower()}{text[1:].rstrip('.')}{keys_of(field)}"


def _word_hint(found: list[Mistake], raw: Any) -> str:
    """Return a hint at the nearest of the words that are allowed."""
    if not isinstance(raw, str):
        return ""
    words = [one for m in found if m.type == "literal_error" for one in choices_of(m)]
    return nearest(raw, [one for one in words if isinstance(one, str)])


def _number_hint(found: list[Mistake], raw: Any) -> str:
    if isinstance(raw, str) and any(m.type.startswith(("int", "float")) for m in found):
        try:
            float(raw)
        except ValueError:
            return ""
        return " (this is text; write a number without quotes, in full such as 1.0e-5)"
    if isinstance(raw, float) and raw.is_integer() and any(m.type == "int_type" for m in found):
        return f" (write {raw:.0f})"
    return ""


def show(value: Any) -> str:
    """Return a value of a config, short enough for a line."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return f"a mapping with {', '.join(map(str, value)) or 'no key'}"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
