"""Forms of the operands and options of a call plan, as its files and messages have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argand.checks import as_array, as_number, as_real
from argand.precision import Precision, precision_name

_PAIRS = {"complex32": "fp16"}
"""Tensors that the calls take as `Pairs`, whose type these have in forms."""
_SCALARS = ("alpha", "beta")
"""Options that are complex numbers, which JSON has not."""
_REALS = ("scale", "tolerance")
"""Options that are real numbers."""


def form_of(x: Any, name: str = "an operand") -> tuple[Any, ...] | None:
    """Return the type and shape of an operand, which errors call by ``name``."""
    if x is None:
        return None
    kind = getattr(x, "format" if hasattr(x, "array") else "dtype", None)  # `argand.Pairs` or not
    if kind is None and hasattr(x, "precision"):
        kind = f"packed {x.precision.name}"
    if kind is None:
        x = as_array(x, name)
        kind = x.dtype
    name = str(kind).removeprefix("torch.")
    return _PAIRS.get(name, name), tuple(x.shape)


def in_words(form: tuple[Any, ...] | None) -> str:
    """Return a form as messages have it."""
    return "None" if form is None else f"{form[0]} {form[1]}"


def require_form(name: str, x: Any, expected: tuple[Any, ...] | None) -> None:
    """Raise ValueError where an array, or None, has not the form that was planned."""
    found = form_of(x, name)
    if found != expected:
        raise ValueError(
            f"{name} must be {in_words(expected)} as planned, got {in_words(found)}; "
            "make another plan for it"
        )


def as_list(form: tuple[Any, ...] | None) -> list[Any] | None:
    """Return a form as JSON has it."""
    return None if form is None else [form[0], list(form[1])]


def given_options(options: Mapping[str, Any]) -> str:
    """Return the options that are not left out, as messages have them."""
    return ", ".join(f"{name}={value}" for name, value in options.items() if value is not None)


def as_json(name: str, value: Any) -> Any:
    """Return an option as JSON has it: a precision by its name, a complex number as two.

    A number in memory, such as a tensor of torch, is read: later changes do not concern a plan.
    Raises ValueError for a precision that has no name, TypeError for a scalar that is no number.
    """
    if name == "precision" and value is not None:
        found = precision_name(value)
        if isinstance(found, Precision):
            raise ValueError(f"precision of a plan must be a name or a dtype, got {found}")
        return found
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if name in _SCALARS and not isinstance(value, int | float | complex):
        value = as_number(value, name)
    if name in _REALS and not isinstance(value, int | float | None):
        value = as_real(value, name)
    return [value.real, value.imag] if isinstance(value, complex) else value


def from_json(name: str, value: Any) -> Any:
    """Return the option of `as_json`."""
    return complex(*value) if name in _SCALARS and isinstance(value, list) else value
