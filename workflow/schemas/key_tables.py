"""The tables of config/README.md: keys with type, unit, default and range; formats of files."""

from __future__ import annotations

import inspect
import itertools
import re
import types
import typing
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from argand import PRECISIONS
from argand.precision import EXACT_PRECISIONS
from pydantic import BaseModel, WithJsonSchema
from pydantic.fields import FieldInfo

from workflow.config.annotations import alternatives, limits, models_within
from workflow.config.file_input import FileInput
from workflow.config.formats import FORMATS
from workflow.config.sweeps import is_input, is_list, sweep_of
from workflow.study import Settings
from workflow.workloads import KINDS, Case

_HEAD = "| key | type | unit | default | allowed | meaning |\n|---|---|---|---|---|---|"
_WORDS: dict[Any, str] = {
    int: "whole number", float: "number", bool: "true or false", str: "text", Path: "path",
    types.NoneType: "",
}  # fmt: skip
_PRECISIONS_LINK = "a [precision](../README.md#precisions-and-devices)"
_SEVERAL, _SEVERAL_LINK = "Mappings of several kinds", "#mappings-of-several-kinds"
_LARGE = 1e6
_UNITS = {"_m": "m", "_hz": "Hz", "_deg": "degree", "_s": "s"}
_BLOCK = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_tables(text: str) -> str:
    """Return the README with the tables between its marks made from the models.

    ``<!-- keys: study -->`` takes the keys of the study, ``common`` those that every workload has,
    ``input`` those of every input from a file, ``formats`` what files of each format hold,
    ``kinds`` a section for each kind. Raises KeyError for another mark, ValueError for no mark.
    """
    makers = {
        "study": _study,
        "common": _common,
        "input": _input,
        "formats": _formats,
        "kinds": _kinds,
    }
    if not _BLOCK.search(text):
        raise ValueError("no mark for the tables of keys")
    return _BLOCK.sub(lambda found: f"{found[1]}\n{makers[found[2]]()}\n\n{found[3]}", text)


def _study() -> str:
    return _table(Settings.model_fields, sweeps=False)


def _common() -> str:
    kinds = ", ".join(f"`{kind}`" for kind in sorted(KINDS))
    return _table(Case.model_fields).replace("| required |  |", f"| required | {kinds} |", 1)


def _input() -> str:
    """Return the keys of every input, and of what they hold."""
    parts = [_table(FileInput.model_fields, sweeps=False)]
    for name, field in FileInput.model_fields.items():
        for model in models_within(field.annotation):
            parts += [f"`{name}`: {_text(model)}", _table(model.model_fields, sweeps=False)]
    return "\n\n".join(parts)


def _formats() -> str:
    rows = [f"| `{name}` | {one.arrays} | {one.needs} |" for name, one in FORMATS.items()]
    return "\n".join(["| format | arrays | needs |", "|---|---|---|", *rows])


def _kinds() -> str:
    """Return a section for each kind, after one of the mappings that several kinds have."""
    kinds = {kind: KINDS[kind].case_type for kind in sorted(KINDS)}
    count = Counter(text for case in kinds.values() for _, text in _mappings(case))
    several = [text for text in count if count[text] > 1]
    parts = [f"### {_SEVERAL}", *several]
    for kind, case in kinds.items():
        own = [text for _, text in _mappings(case) if text not in several]
        shared = [f"`{name}`" for name, text in _mappings(case) if text in several]
        parts += [f"### {kind}", _text(case), _table(_own_keys(case))]
        if shared:
            parts.append(f"{', '.join(shared)}: see [{_SEVERAL.lower()}]({_SEVERAL_LINK}).")
        parts += own
    return "\n\n".join(parts)


def _own_keys(case: type[Case]) -> dict[str, FieldInfo]:
    """Return a kind's own keys, and the common ones with another default."""
    return {
        name: field
        for name, field in case.model_fields.items()
        if name != "kind" and repr(Case.model_fields.get(name)) != repr(field)
    }


def _mappings(case: type[Case]) -> list[tuple[str, str]]:
    """Return a kind's own keys that are mappings, and what these hold."""
    return [
        (name, _nested(name, field, model))
        for name, field in _own_keys(case).items()
        for model in models_within(field.annotation)
    ]


def _nested(name: str, field: FieldInfo, model: type[BaseModel]) -> str:
    """Return the keys of a mapping within a workload.

    Those that every file input has stand elsewhere.
    """
    shared = FileInput.model_fields if issubclass(model, FileInput) else {}
    beside = " Beside [those of every input](#data-from-a-file) it has the keys:" if shared else ""
    fields = {key: item for key, item in model.model_fields.items() if key not in shared}
    sweeps = not is_input(model) and not is_list(field.annotation)
    return f"`{name}`: {_text(model)}{beside}\n\n{_table(fields, sweeps)}"


def _text(model: type[BaseModel]) -> str:
    """Return a model's docstring, without its line breaks."""
    paragraphs = inspect.getdoc(model) or ""
    return "\n\n".join(" ".join(part.split()) for part in paragraphs.split("\n\n"))


def _table(fields: Mapping[str, FieldInfo], sweeps: bool = True) -> str:
    return "\n".join([_HEAD, *(_row(name, field, sweeps) for name, field in fields.items())])


def _row(name: str, field: FieldInfo, sweeps: bool) -> str:
    swept = " (sweeps)" if sweeps and sweep_of(name, field.annotation) else ""
    cells = [
        f"`{name}`",
        type_words(field.annotation) + swept,
        unit(name),
        _default(field),
        _allowed(field),
        field.description or "",
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def unit(key: str) -> str:
    """Return the unit that a key ends with; what has none is a count or a ratio."""
    return next((unit for ending, unit in _UNITS.items() if key.endswith(ending)), "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value == tuple(PRECISIONS):
        return "all"
    return "" if value is None or value == {} else f"`{_literal(value)}`"


def _literal(value: Any) -> str:
    """Return a value as it would stand in a config."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, BaseModel):
        return _literal(value.model_dump(exclude_unset=True))
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    large = isinstance(value, float) and abs(value) >= _LARGE
    return f"{value:g}" if large else str(value)


def _allowed(field: FieldInfo) -> str:
    named = [*field.metadata, *_named(field.annotation)]
    schemas = [item.json_schema or {} for item in named if isinstance(item, WithJsonSchema)]
    lists = [_listed(schema.get("enum", ())) for schema in schemas]
    lists += [
        [f"`{choice}`" for choice in typing.get_args(member)]
        for member in alternatives(field.annotation)
        if typing.get_origin(member) is typing.Literal
    ]
    choices = itertools.chain(*lists)
    return " or ".join(filter(None, [", ".join(dict.fromkeys(choices)), limits(field)]))


def _listed(choices: Sequence[str]) -> list[str]:
    """Return choices as the table has them: precisions by a link, because the README lists them."""
    linked = [_PRECISIONS_LINK] if set(PRECISIONS) <= set(choices) else []
    every = {*PRECISIONS, *EXACT_PRECISIONS}
    shown = [f"`{choice}`" for choice in choices if not linked or choice not in every]
    return linked + shown


def _named(annotation: Any) -> Iterator[Any]:
    """Yield the metadata of Annotated anywhere within a type."""
    yield from getattr(annotation, "__metadata__", ())
    for part in typing.get_args(annotation):
        yield from _named(part)


def type_words(annotation: Any) -> str:
    """Return a type in the words of a config."""
    words = [_word(member) for member in alternatives(annotation)]
    return " or ".join(dict.fromkeys(filter(None, words)))


def _word(member: Any) -> str:
    origin, args = typing.get_origin(member), typing.get_args(member)
    if origin is typing.Literal:
        return "choice"
    if origin is tuple and Ellipsis not in args:
        return f"list of {len(args)} ({', '.join(dict.fromkeys(map(type_words, args)))})"
    if origin in (tuple, list):
        return f"list of {type_words(args[0])}"
    if origin is dict:
        return f"mapping to {type_words(args[1])}"
    if isinstance(member, type) and issubclass(member, BaseModel):
        return "mapping"
    return _WORDS.get(member, getattr(member, "__name__", str(member)))
