"""The JSON schema of a study, for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from workflow.config.annotations import models_in
from workflow.config.sweeps import is_input, sweep_of
from workflow.study import LONGEST_NAME, NAME, Settings
from workflow.workloads import KINDS

_DRAFT = "http://json-schema.org/draft-07/schema#"
"""The version that editors' YAML support knows best."""
_ABOUT = ("title", "description", "default")
_LEVELS = 4
"""Levels of objects down to the keys of a definition."""


def study_schema() -> str:
    """Return the schema as text: what a config may hold, with sweeps, one shape for each kind.

    A kind's shape is chosen by the value of ``kind``, so that an editor completes and criticises
    the keys of that kind alone.
    """
    cases = [KINDS[kind].case_type for kind in sorted(KINDS)]
    references, definitions = models_json_schema([(case, "validation") for case in cases])
    schemas = _without_titles(definitions)["$defs"]
    for model in _reachable(cases):
        _allow_sweeps(model, schemas[model.__name__])
    for kind in KINDS:
        schemas[KINDS[kind].case_type.__name__]["properties"]["kind"] = {"const": kind}
    settings = _without_titles(Settings.model_json_schema())
    schema = {
        "$schema": _DRAFT,
        "title": "A study of Argand",
        **settings,
        "properties": {**settings["properties"], "workloads": _workloads(references)},
        "required": ["workloads"],
        "$defs": {**settings.get("$defs", {}), **schemas},
    }
    return _laid_out(schema, _LEVELS) + "\n"


def _laid_out(value: Any, levels: int, indent: str = "") -> str:
    """Return JSON with each key of the first ``levels`` levels of objects on a line of its own."""
    if not levels or not isinstance(value, dict):
        return json.dumps(value)
    inner = indent + "  "
    lines = [
        f"{inner}{json.dumps(key)}: {_laid_out(one, levels - 1, inner)}"
        for key, one in value.items()
    ]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _workloads(references: Any) -> dict[str, Any]:
    branches = [
        {
            "if": {"properties": {"kind": {"const": kind}}},
            "then": references[(KINDS[kind].case_type, "validation")],
        }
        for kind in sorted(KINDS)
    ]
    return {
        "description": "The workloads by name; a name becomes the name of files.",
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"pattern": f"^{NAME.pattern}$", "maxLength": LONGEST_NAME},
        "additionalProperties": {
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": {"enum": sorted(KINDS), "description": "What kind of workload it is."}
            },
            "allOf": branches,
        },
    }


def _reachable(models: Sequence[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    """Yield models whose parameters may be swept: the cases and what is nested in them."""
    waiting, seen = list(models), set()
    while waiting:
        model = waiting.pop()
        if model in seen or is_input(model):
            continue
        seen.add(model)
        yield model
        waiting += [m for field in model.model_fields.values() for m in models_in(field.annotation)]


def _allow_sweeps(model: type[BaseModel], schema: dict[str, Any]) -> None:
    """Let a parameter be a list of what it is, where `workflow.config.sweeps` would expand it."""
    for name, field in model.model_fields.items():
        lists = sweep_of(name, field.annotation)
        if not lists:
            continue
        one = schema["properties"][name]
        about = {key: one.pop(key) for key in _ABOUT if key in one}
        each = one if lists == "values" else {"type": "array", **one}
        several = {"type": "array", "minItems": 1, "items": each}
        schema["properties"][name] = {**about, "anyOf": [one, several]}


def _without_titles(schema: Any, is_properties: bool = False) -> Any:
    """Drop the titles that pydantic makes of field names: editors show the keys themselves."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_titles(value, key == "properties")
        for key, value in schema.items()
        if is_properties or key != "title"
    }
