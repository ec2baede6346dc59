"""A program of OpenQASM 3 as qiskit-qasm3-import 0.6.0 reads it rightly, or an error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openqasm3 import ast

CONSTANTS = {"pi": math.pi, "π": math.pi, "tau": math.tau, "τ": math.tau}
CONSTANTS |= {"euler": math.e, "ℇ": math.e}
"""The constants of the language."""
_DEFERRED = "; where a measured bit decides, its qubit may: `cx q[0], q[2]` for `if (c[0]) x q[2]`"


def order_parameters(program: ast.Program) -> None:
    """Rename parameters of gates that it defines so that alphabetical order is that of a call.

    qiskit-qasm3-import 0.6.0 takes the angles of a call for the parameters in alphabetical order:
    of ``gate g(theta, phi)`` it gives the first angle to phi. No two gates have a name in common,
    which Qiskit refuses in an expression of parameters of both.
    """
    from openqasm3 import ast

    for number, gate in enumerate(program.statements):
        if isinstance(gate, ast.QuantumGateDefinition):
            names = [parameter.name for parameter in gate.arguments]
            renamed = {name: f"parameter_{number}_{n:06}" for n, name in enumerate(names)}
            _rename([gate.arguments, gate.body], renamed)


def _rename(part: object, names: dict[str, str]) -> None:
    """Give identifiers below ``part`` other names, except those of gates that are called."""
    from openqasm3 import ast

    if isinstance(part, ast.Identifier):
        part.name = names.get(part.name, part.name)
    elif isinstance(part, ast.QuantumGate):
        _rename([part.modifiers, part.arguments], names)
    elif isinstance(part, ast.QASMNode):
        _rename(list(vars(part).values()), names)
    elif isinstance(part, list):
        for one in part:
            _rename(one, names)


def check_divisions(part: object) -> None:
    """Raise ValueError where angles of gates have a quotient of integers with a remainder.

    OpenQASM 3 drops the remainder, so that ``3/4*pi`` is 0, and OpenQASM 2 does not.
    """
    from openqasm3 import ast

    if isinstance(part, ast.Expression):
        whole(part)
    elif isinstance(part, ast.QuantumGate | ast.QuantumPhase):
        check_divisions([vars(part).get(name) for name in ("modifiers", "arguments", "argument")])
    elif isinstance(part, ast.QuantumGateModifier):
        check_divisions(part.argument)
    elif isinstance(part, ast.QuantumGateDefinition):
        check_divisions(part.body)
    elif isinstance(part, ast.Program):
        check_divisions(part.statements)
    elif isinstance(part, list):
        for one in part:
            check_divisions(one)


def whole(node: object, *, is_angle: bool = True) -> int | None:
    """Return the value of an expression of integers, None for any other.

    A quotient drops its remainder; in an angle a quotient with a remainder is a ValueError.
    """
    from openqasm3 import ast

    if isinstance(node, ast.IntegerLiteral):
        return node.value
    if isinstance(node, ast.UnaryExpression):
        value = whole(node.expression, is_angle=is_angle)
        return -value if value is not None and node.op.name == "-" else None
    if isinstance(node, ast.FunctionCall) and is_angle:
        check_divisions(node.arguments)
    if not isinstance(node, ast.BinaryExpression):
        return None
    one, other = (whole(part, is_angle=is_angle) for part in (node.lhs, node.rhs))
    if one is None or other is None or node.op.name not in "+-*/":
        return None
    if node.op.name == "/":
        if is_angle and other:
            return int(quotient(node, one, other))
        return None if not other else abs(one) // abs(other) * (1 if one * other >= 0 else -1)
    return {"+": one + other, "-": one - other, "*": one * other}[node.op.name]


def quotient(node: ast.Expression, one: float, other: float) -> float:
    """Return a quotient of numbers: an integer if both are integers.

    Raises ValueError, with the line, for integers that leave a remainder, and ZeroDivisionError.
    """
    if not (isinstance(one, int) and isinstance(other, int)):
        return one / other
    whole, left = divmod(abs(one), abs(other))
    whole = whole if one * other >= 0 else -whole
    if left:
        raise ValueError(
            f"{place_of(node)}{one}/{other} is {whole} in OpenQASM 3, which divides integers "
            f"without a remainder; for a fraction write {one}.0/{other}"
        )
    return whole


def check_control(program: ast.Program) -> None:
    """Raise ValueError, with the line, for a loop, a branch or a box."""
    from openqasm3 import ast

    names = {
        ast.ForInLoop: "for_loop", ast.WhileLoop: "while_loop", ast.BranchingStatement: "if_else",
        ast.Box: "box",
    }  # fmt: skip
    of_gates = [one for one in program.statements if isinstance(one, ast.QuantumGateDefinition)]
    within = [statement for gate in of_gates for statement in gate.body]
    for statement in [*program.statements, *within]:
        if (name := names.get(type(statement))) is not None:
            raise ValueError(control_in_words(f"{place_of(statement)}{name}", name))


def control_in_words(what: str, name: str) -> str:
    """Return the message that refuses classical control, which Qiskit calls ``name``.

    Deferred measurement (Nielsen and Chuang, section 4.4) turns a branch into a gate.
    """
    advice = _DEFERRED if name == "if_else" else ""
    return f"{what} is classical control, which is not a unitary evolution{advice}"


def place_of(node: object) -> str:
    """Return where a node stands, as messages of qiskit-qasm3-import begin with it."""
    span = getattr(node, "span", None)
    return f"{span.start_line},{span.start_column}: " if span else ""
