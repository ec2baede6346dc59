"""Arithmetic of OpenQASM 3's constants: operators, functions and the types that results have."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import Any

Number = int | float
MOST_BITS = 64
"""Bits of an integer: the language leaves those of one without a size to whoever reads it."""


def _power(base: Number, exponent: Number) -> Any:
    """Return a power, of integers an integer; a complex number of a negative one's root."""
    if isinstance(base, int) and isinstance(exponent, int):
        if exponent < 0:
            raise ValueError(f"{base}**{exponent} of integers is none; write {base}.0**{exponent}")
        if exponent > MOST_BITS and abs(base) > 1:
            raise ValueError(f"an integer has at most {MOST_BITS} bits")
    return base**exponent


def _remainder(one: Number, other: Number) -> Number:
    """Return a remainder with the sign of the dividend, as C has it; of integers an integer."""
    if not (isinstance(one, int) and isinstance(other, int)):
        return math.fmod(one, other)
    found = abs(one) % abs(other)
    return -found if one < 0 else found


def _rounded(form: str) -> Callable[[Number], float]:
    """Return what rounds to a type of floating point, by its letter in `struct`."""
    return lambda value: struct.unpack(form, struct.pack(form, value))[0]


FLOATS = {16: _rounded("e"), 32: _rounded("f"), 64: float}
"""Functions that round to a float, by its bits."""
OPERATORS: dict[str, tuple[int, Callable[..., Any]]] = {
    "+": (2, operator.add), "-": (2, operator.sub), "*": (2, operator.mul),
    "/": (2, operator.truediv), "%": (2, _remainder), "**": (2, _power),
}  # fmt: skip
"""Operators between numbers, each of which takes two."""
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    **{name: (1, getattr(math, name)) for name in ("sin", "cos", "tan", "exp", "log", "sqrt")},
    **{f"arc{name}": (1, getattr(math, f"a{name}")) for name in ("sin", "cos", "tan")},
    "floor": (1, lambda x: float(math.floor(x))), "ceiling": (1, lambda x: float(math.ceil(x))),
    "mod": (2, _remainder),
}  # fmt: skip
"""Functions of the language for numbers, with how many they take."""
