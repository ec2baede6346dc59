"""Gates of OpenQASM 3 that are written out with the angles of each call, as numbers.

Qiskit 2.6.2 takes no power of a gate whose angles are parameters, and loses parameters where such a
gate is controlled and inverted; qiskit-qasm3-import 0.6.0 reads no product, power, remainder or
function of parameters, and no sum of one and an integer. With numbers none of this matters.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from workflow.circuits.qasm3_arithmetic import number_of
from workflow.circuits.qasm3_modifiers import LIBRARY_GATES
from workflow.circuits.qasm3_program import place_of, whole
from workflow.counted import counted

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from openqasm3 import ast

_OF_CALL = "_of_call_"
"""In the name of a gate with the angles of a call, between the gate's name and a number."""


def write_instances(program: ast.Program) -> None:
    """Replace gates that Qiskit reads only with numbers by gates without parameters.

    Each call gets such a gate; calls with the same angles share it.

    Raises ValueError, with the line, for a second gate of a name, a wrong number of angles, and an
    angle that is not made of numbers by + - * / % **.
    """
    from openqasm3 import ast

    instances, known = _Instances(), {"U"}
    for statement in program.statements:
        if isinstance(statement, ast.Include):
            known |= LIBRARY_GATES
        if isinstance(statement, ast.QuantumGateDefinition):
            if statement.name.name in known:
                raise ValueError(f"{place_of(statement)}'{statement.name.name}' is already defined")
            known.add(statement.name.name)
        if not isinstance(statement, ast.QuantumGateDefinition):
            instances.rewrite([statement], {})
        elif statement.arguments and instances.needs_numbers(statement):
            instances.definitions[statement.name.name] = statement
            continue
        else:
            instances.rewrite(statement.body, {})
        instances.statements.append(statement)
    program.statements = instances.statements


class _Instances:
    """The statements of a program, with the gates that its calls have made so far."""

    def __init__(self) -> None:
        self.statements: list[ast.Statement | ast.Pragma] = []
        self.definitions: dict[str, ast.QuantumGateDefinition] = {}
        """Definitions that need numbers for parameters, which are not among the statements."""
        self.names: dict[tuple[str, tuple[float, ...]], str] = {}

    def needs_numbers(self, definition: ast.QuantumGateDefinition) -> bool:
        """Return whether parts of a definition can be read only with numbers for its parameters.

        Those are modifiers, calls of gates that need numbers, and angles beyond `_is_read`.
        """
        from openqasm3 import ast

        names = {parameter.name for parameter in definition.arguments}
        for inner in definition.body:
            if isinstance(inner, ast.QuantumGate):
                needed, angles = inner.name.name in self.definitions, inner.arguments
            elif isinstance(inner, ast.QuantumPhase):
                needed, angles = False, [inner.argument]
            else:
                continue
            if needed or inner.modifiers or not all(_is_read(one, names) for one in angles):
                return True
        return False

    def rewrite(self, statements: Sequence[ast.QASMNode], angles: Mapping[str, float]) -> None:
        """Put numbers for parameters, and call the gates that are made of them."""
        from openqasm3 import ast

        for one in statements:
            if isinstance(one, ast.QuantumGate | ast.QuantumPhase) and angles:
                for modifier in one.modifiers:
                    if modifier.argument is not None:
                        modifier.argument = _number(modifier.argument, angles)
            if isinstance(one, ast.QuantumPhase) and angles:
                one.argument = _number(one.argument, angles)
            elif isinstance(one, ast.QuantumGate):
                if one.name.name in self.definitions:
                    self._call(one, angles)
                elif angles:
                    one.arguments = [_number(argument, angles) for argument in one.arguments]

    def _call(self, call: ast.QuantumGate, angles: Mapping[str, float]) -> None:
        """Have a call use the gate with its angles as numbers; define that gate if it is new."""
        definition = self.definitions[call.name.name]
        parameters = [parameter.name for parameter in definition.arguments]
        values = [number_of(argument, angles) for argument in call.arguments]
        numbers = tuple(float(value) for value in values if value is not None)
        if len(numbers) < len(values) or len(values) != len(parameters):
            takes = f"gate {call.name.name} takes {counted(len(parameters), 'angle')}"
            raise ValueError(
                f"{place_of(call)}{takes} made of numbers by + - * / % **, "
                f"got {len(numbers)} of {len(values)}"
            )
        key = call.name.name, numbers
        if key not in self.names:
            made = copy.deepcopy(definition)
            made.name.name = f"{call.name.name}{_OF_CALL}{len(self.names)}"
            made.arguments = []
            self.names[key] = made.name.name
            self.rewrite(made.body, dict(zip(parameters, numbers, strict=True)))
            self.statements.append(made)
        call.name.name, call.arguments = self.names[key], []


def _within(node: object, names: Container[str]) -> list[str]:
    """Return the identifiers below a node that have one of these names."""
    from openqasm3 import ast

    if isinstance(node, ast.Identifier):
        return [node.name] if node.name in names else []
    if isinstance(node, ast.FunctionCall):
        return _within(node.arguments, names)
    parts = node if isinstance(node, list) else []
    if isinstance(node, ast.QASMNode):
        parts = list(vars(node).values())
    return [name for part in parts for name in _within(part, names)]


def _is_read(node: ast.Expression, names: Container[str]) -> bool:
    """Return whether Qiskit reads an angle of parameters with these names.

    qiskit-qasm3-import reads linear functions of them. But where one occurs twice, or times 0,
    Qiskit may keep a parameter that should have vanished.
    """
    found = _within(node, names)
    return len(set(found)) == len(found) and _is_linear(node, names)


def _is_linear(node: ast.Expression, names: Container[str]) -> bool:
    """Return whether an angle is made of sums of parameters and of numbers that are no integers.

    These may be multiplied by numbers other than 0, and divided by numbers.
    """
    from openqasm3 import ast

    if not _within(node, names) or isinstance(node, ast.Identifier):
        return True
    if isinstance(node, ast.UnaryExpression):
        return _is_linear(node.expression, names)
    if not isinstance(node, ast.BinaryExpression) or node.op.name not in ("+", "-", "*", "/"):
        return False
    numbers = [one for one in (node.lhs, node.rhs) if not _within(one, names)]
    if node.op.name == "*":
        fits = len(numbers) == 1 and number_of(numbers[0], {}) != 0
    elif node.op.name == "/":
        fits = len(numbers) == 1 and numbers[0] is node.rhs
    else:
        fits = not any(whole(one, is_angle=False) is not None for one in numbers)
    return fits and _is_linear(node.lhs, names) and _is_linear(node.rhs, names)


def _number(node: ast.Expression, angles: Mapping[str, float]) -> ast.Expression:
    """Return a literal for an expression with parameters, and any other as it is."""
    from openqasm3 import ast

    if whole(node, is_angle=False) is not None:
        return node
    if (value := number_of(node, angles)) is None:
        if _within(node, angles):
            raise ValueError(f"{place_of(node)}the angle is not made of parameters and numbers")
        return node
    literal = ast.FloatLiteral(float(value))
    literal.span = node.span
    return literal
