"""Gates of OpenQASM 3 whose definitions have modifiers, written out with the angles of each call.

Qiskit 2.6.2 takes no power of a gate whose angles are parameters, and loses parameters where such a
gate is controlled and inverted. With numbers for the parameters neither matters.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from workflow.circuits.qasm3_arithmetic import number_of
from workflow.circuits.qasm3_modifiers import LIBRARY_GATES
from workflow.circuits.qasm3_program import place_of, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openqasm3 import ast

_OF_CALL = "_of_call_"
"""In the name of a gate with the angles of a call, between the gate's name and a number."""


def write_instances(program: ast.Program) -> None:
    """Replace gates with parameters and modifiers by gates without parameters, one for each call.

    Calls with the same angles have the same gate.

    Raises ValueError, with the line, for a second gate of a name, a wrong number of angles, and one
    that is not made of numbers by + - * /.
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
        elif statement.arguments and instances.has_modifiers(statement):
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
        """Definitions with parameters and modifiers, which are not among the statements."""
        self.names: dict[tuple[str, tuple[float, ...]], str] = {}

    def has_modifiers(self, definition: ast.QuantumGateDefinition) -> bool:
        """Return whether a definition, or that of a gate that it calls, has modifiers."""
        from openqasm3 import ast

        return any(
            inner.modifiers
            or (isinstance(inner, ast.QuantumGate) and inner.name.name in self.definitions)
            for inner in definition.body
            if isinstance(inner, ast.QuantumGate | ast.QuantumPhase)
        )

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
        """Let a call be of the gate with its angles, which is defined if it is not yet."""
        definition = self.definitions[call.name.name]
        parameters = [parameter.name for parameter in definition.arguments]
        values = [number_of(argument, angles) for argument in call.arguments]
        numbers = tuple(float(value) for value in values if value is not None)
        if len(numbers) < len(values) or len(values) != len(parameters):
            raise ValueError(
                f"{place_of(call)}gate {call.name.name} takes {len(parameters)} angles made of "
                f"numbers by + - * /, got {len(numbers)} of {len(values)}"
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


def _number(node: ast.Expression, angles: Mapping[str, float]) -> ast.Expression:
    """Return a literal for an expression with parameters, and any other as it is."""
    from openqasm3 import ast

    if whole(node, is_angle=False) is not None:
        return node
    if (value := number_of(node, angles)) is None:
        return node
    literal = ast.FloatLiteral(float(value))
    literal.span = node.span
    return literal
