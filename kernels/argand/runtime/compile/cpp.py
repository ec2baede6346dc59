"""Values of Python in CUDA C++: literals, template arguments, plans as constants.

Nothing here needs a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from argand.precision import Precision


def literal(value: object) -> str:
    """Return a value in C++: a bool, a tuple as a braced list, all else as Python writes it."""
    if isinstance(value, tuple):
        return f"{{{listed(*value)}}}"
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)


def listed(*values: object) -> str:
    """Return the literals of values with commas between them, such as template arguments."""
    return ", ".join(map(literal, values))


def constant(kind: str, members: Mapping[str, object], name: str = "kPlan") -> str:
    """Return the definition of a constant of a structure, by the names of its members."""
    values = ", ".join(f".{member} = {literal(value)}" for member, value in members.items())
    return f"constexpr {kind} {name}{{{values}}};\n"


def changed(plan: Any, *names: str) -> dict[str, object]:
    """Return those of a plan's members that differ from their defaults, which C++ has too."""
    defaults = {field.name: field.default for field in fields(plan)}
    return {name: x for name in names if (x := getattr(plan, name)) != defaults[name]}


def roundings(precision: Precision) -> tuple[str, str]:
    """Return how both terms of an operand are rounded; a single term fills the second unread."""
    first, second = (precision.roundings * 2)[:2]
    return f"Rounding::{first}", f"Rounding::{second}"


def operand_arguments(precision: Precision) -> str:
    """Return the template arguments that say how operands are rounded."""
    return listed(f"Operand::{precision.operand.name}", precision.terms, *roundings(precision))
