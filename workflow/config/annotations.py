"""Values that a field's type allows: the members of unions, models in it, the range of numbers."""

from __future__ import annotations

import types
import typing
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def alternatives(annotation: Any) -> list[Any]:
    """Return the members of a union without their Annotated wrappers, or the type itself.

    TypeVars and forward references are left alone: pydantic has resolved a field's annotation.
    """
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return alternatives(typing.get_args(annotation)[0])
    if origin is typing.Union or origin is types.UnionType:
        return [member for part in typing.get_args(annotation) for member in alternatives(part)]
    return [annotation]


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models among the alternatives of a type."""
    return [
        member
        for member in alternatives(annotation)
        if isinstance(member, type) and issubclass(member, BaseModel)
    ]


def models_within(annotation: Any) -> list[type[BaseModel]]:
    """Return models that a type is, or is a list or mapping of."""
    found = models_in(annotation)
    for member in alternatives(annotation):
        if typing.get_origin(member) in (list, tuple, dict):
            found += [model for item in typing.get_args(member) for model in models_in(item)]
    return list(dict.fromkeys(found))


def limits(field: FieldInfo) -> str:
    """Return the range that a field allows, in words; empty where it has none."""
    words = []
    for name, text in (("gt", "above"), ("ge", "at least"), ("lt", "below"), ("le", "at most")):
        words += [f"{text} {bound}" for bound in constraints_of(field, name)]
    return " and ".join(dict.fromkeys(words))


def constraints_of(field: FieldInfo, name: str) -> list[Any]:
    """Return the values of a field's constraints of one name, such as ``ge`` or ``pattern``."""
    constraints = [*field.metadata, *_constraints(field.annotation)]
    found = (getattr(constraint, name, None) for constraint in constraints)
    return [one for one in found if one is not None]


def _constraints(annotation: Any) -> list[Any]:
    """Return the constraints that an Annotated type itself carries."""
    if typing.get_origin(annotation) is typing.Annotated:
        base, *extras = typing.get_args(annotation)
        inner = [item for extra in extras for item in getattr(extra, "metadata", [extra])]
        return [*inner, *_constraints(base)]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [item for part in typing.get_args(annotation) for item in _constraints(part)]
    return []
