"""Arithmetic of OpenQASM 3: values of expressions, operators, functions and types of results."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from workflow.circuits.qasm3_program import CONSTANTS, place_of, quotient

if TYPE_CHECKING:
    from openqasm3 import ast

Number = int | float
MAX_BITS = 64
"""Bits of an integer: the language leaves those of one without a size to whoever reads it."""


def _power(base: Number, exponent: Number) -> Any:
    """Return a power: an integer if both are integers, complex for a root of a negative number.

    Raises ValueError for integers with an exponent below 0 or too large for `MAX_BITS` bits.
    """
    if isinstance(base, int) and isinstance(exponent, int):
        if exponent < 0:
            raise ValueError(f"{base}**{exponent} is no integer; write {base}.0**{exponent}")
        if exponent > MAX_BITS and abs(base) > 1:
            raise ValueError(f"an integer has at most {MAX_BITS} bits")
    return base**exponent


def _remainder(one: Number, other: Number) -> Number:
    """Return a remainder with the dividend's sign, as in C: an integer if both are integers."""
    if not (isinstance(one, int) and isinstance(other, int)):
        return math.fmod(one, other)
    found = abs(one) % abs(other)
    return -found if one < 0 else found


def _rounded(form: str) -> Callable[[Number], float]:
    """Return a function that rounds to a type of floating point, by its letter in `struct`."""
    return lambda value: struct.unpack(form, struct.pack(form, value))[0]


FLOATS = {16: _rounded("e"), 32: _rounded("f"), 64: float}
"""Functions that round to a float, by the bits of its type."""
OPERATORS: dict[str, tuple[int, Callable[..., Any]]] = {
    "+": (2, operator.add), "-": (2, operator.sub), "*": (2, operator.mul),
    "/": (2, operator.truediv), "%": (2, _remainder), "**": (2, _power),
}  # fmt: skip
"""Operators between numbers: how many numbers each takes, and its function."""
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    **{name: (1, getattr(math, name)) for name in ("sin", "cos", "tan", "exp", "log", "sqrt")},
    **{f"arc{name}": (1, getattr(math, f"a{name}")) for name in ("sin", "cos", "tan")},
    "floor": (1, lambda x: float(math.floor(x))), "ceiling": (1, lambda x: float(math.ceil(x))),
    "mod": (2, _remainder),
}  # fmt: skip
"""Functions of the language: how many numbers each takes, and its function."""


def number_of(node: object, values: Mapping[str, Number]) -> Number | None:
    """Return the value of an expression of numbers and constants, None for any other."""
    from openqasm3 import ast

    if isinstance(node, ast.IntegerLiteral | ast.FloatLiteral | ast.BooleanLiteral):
        return node.value
    if isinstance(node, ast.Identifier):
        found = values.get(node.name, CONSTANTS.get(node.name))
        return None if found is None or math.isnan(found) else found
    if isinstance(node, ast.UnaryExpression) and node.op.name == "-":
        value = number_of(node.expression, values)
        return None if value is None else -value
    if isinstance(node, ast.BinaryExpression):
        given = [number_of(node.lhs, values), number_of(node.rhs, values)]
        return _result(node, node.op.name, given)
    if isinstance(node, ast.FunctionCall):
        return _result(node, node.name.name, [number_of(one, values) for one in node.arguments])
    return None


def _result(node: ast.Expression, name: str, given: list[Number | None]) -> Number | None:
    """Return the result of an operator or a function; None for what is not known here."""
    numbers = [one for one in given if one is not None]
    if name not in (known := OPERATORS | FUNCTIONS) or len(numbers) < len(given):
        return None
    count, function = known[name]
    where = f"{place_of(node)}{name}: "
    if len(numbers) != count:
        raise ValueError(f"{where}it takes {count}, got {len(numbers)}")
    if name == "/":
        if not numbers[1]:
            raise ValueError(f"{place_of(node)}division by zero")
        return quotient(node, *numbers)
    try:
        found: Number | complex = function(*numbers)
    except (ValueError, ArithmeticError) as error:  # such as math domain error
        raise ValueError(f"{where}{error}") from None
    if isinstance(found, complex) or not math.isfinite(found):
        raise ValueError(f"{where}the result is no finite real number")
    if isinstance(found, int) and found.bit_length() > MAX_BITS:
        raise ValueError(f"{where}an integer has at most {MAX_BITS} bits")
    return found
