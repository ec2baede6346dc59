"""Constants of OpenQASM 3, written out: ``const``, powers, remainders, functions, loops over them.

qiskit-qasm3-import 0.6.0 reads sums, differences, products and quotients of literals and of ``pi``,
``tau`` and ``euler``, and nothing else.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from workflow.circuits.qasm3_arithmetic import FLOATS, MAX_BITS, Number, number_of
from workflow.circuits.qasm3_modifiers import LIBRARY_GATES
from workflow.circuits.qasm3_program import CONSTANTS, place_of

if TYPE_CHECKING:
    from openqasm3 import ast

_MAX_STEPS = 100_000
"""Turns of loops and statements in them: of a circuit's gates as many are read."""


def write_constants(program: ast.Program) -> None:
    """Replace constants by their values, and loops over constants by what they do.

    Declarations of constants are dropped. Sums, differences, products and quotients stay, with
    numbers in them: of a quotient it is said later whether it is one. An expression with a
    parameter of a gate, and a loop over anything else, stay as they are.

    Raises ValueError, with the line, for a constant of another type than int, uint, float or bool,
    with a value that it cannot have or under a name that is taken, for arithmetic without a result
    (a quotient of integers with a remainder, an integer beyond 64 bits, log(0)), and for loops that
    do too much.
    """
    from openqasm3 import ast

    values: dict[str, Number] = {}
    taken, loops = {*CONSTANTS, "U"}, _Loops()
    for statement in program.statements:
        names, gates = _declared(statement), ast.Include | ast.QuantumGateDefinition
        if clash := sorted(names & (values.keys() if isinstance(statement, gates) else taken)):
            raise ValueError(f"{place_of(statement)}'{clash[0]}' is already declared")
        taken |= names
        loops.add(statement, values)
    program.statements = loops.statements


class _Loops:
    """The statements of a program with its constants and loops written out."""

    def __init__(self) -> None:
        self.statements: list[ast.Statement | ast.Pragma] = []
        self._steps = 0

    def add(self, statement: ast.Statement | ast.Pragma, values: dict[str, Number]) -> None:
        """Add what a statement does, a constant to ``values``."""
        from openqasm3 import ast

        if isinstance(statement, ast.ConstantDeclaration):
            values[statement.identifier.name] = _value_of(statement, values)
        elif isinstance(statement, ast.QuantumGateDefinition):
            within = _without(
                values, {one.name for one in (*statement.arguments, *statement.qubits)}
            )
            before, self.statements = self.statements, []
            for part in statement.body:
                self.add(part, within)
            body: list[Any] = self.statements
            statement.body, self.statements = body, [*before, statement]
        elif (numbers := _looped(statement, values)) is None:
            _write(statement, values)
            self.statements.append(statement)
        else:
            assert isinstance(statement, ast.ForInLoop)
            for number in numbers:
                self._steps += 1 + len(statement.block)
                if self._steps > _MAX_STEPS:
                    raise ValueError(
                        f"{place_of(statement)}loops must do at most {_MAX_STEPS} steps in all"
                    )
                within = {**values, statement.identifier.name: number}
                for one in copy.deepcopy(statement.block):
                    self.add(one, within)


def _looped(statement: object, values: Mapping[str, Number]) -> Sequence[int] | None:
    """Return the values of a loop's variable; None for what is no loop over constant integers."""
    from openqasm3 import ast

    if not isinstance(statement, ast.ForInLoop) or any(
        isinstance(one, ast.BreakStatement | ast.ContinueStatement) for one in statement.block
    ):
        return None
    over = statement.set_declaration
    if not isinstance(statement.type, ast.IntType | ast.UintType):
        return None
    found: Sequence[int]
    if isinstance(over, ast.DiscreteSet):
        given = [number_of(one, values) for one in over.values]
        found = [one for one in given if isinstance(one, int)]
        if len(found) < len(given):
            return None
    elif isinstance(over, ast.RangeDefinition):
        start, end = number_of(over.start, values), number_of(over.end, values)
        step = 1 if over.step is None else number_of(over.step, values)
        if not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int) and step):
            return None
        found = range(start, end + (1 if step > 0 else -1), step)  # the end is one of its numbers
    else:
        return None
    least, most = _limits(statement.type, values)
    ends = (found[0], found[-1]) if isinstance(found, range) and found else found
    if beyond := [one for one in ends if not least <= one <= most]:
        where, name = place_of(statement), statement.identifier.name
        raise ValueError(f"{where}{name} cannot be {beyond[0]} in its type")
    return found


def _declared(statement: object) -> set[str]:
    """Return the names that a statement declares, those of the library where it includes that."""
    from openqasm3 import ast

    if isinstance(statement, ast.ConstantDeclaration | ast.ClassicalDeclaration):
        return {statement.identifier.name}
    if isinstance(statement, ast.QubitDeclaration):
        return {statement.qubit.name}
    if isinstance(statement, ast.AliasStatement):
        return {statement.target.name}
    if isinstance(statement, ast.QuantumGateDefinition):
        return {statement.name.name}
    return LIBRARY_GATES if isinstance(statement, ast.Include) else set()


def _value_of(declaration: ast.ConstantDeclaration, values: Mapping[str, Number]) -> Number:
    """Return the value of a constant in its type."""
    from openqasm3 import ast

    where, name, kind = place_of(declaration), declaration.identifier.name, declaration.type
    value = number_of(declaration.init_expression, values)
    if value is None:
        raise ValueError(f"{where}constant {name} must be made of numbers and constants before it")
    if isinstance(kind, ast.FloatType) and (bits := _bits(kind, values)) in FLOATS:
        with suppress(OverflowError):
            if math.isfinite(found := FLOATS[bits](value)):
                return found
        raise ValueError(f"{where}constant {name} is beyond the numbers of its type")
    if not isinstance(kind, ast.IntType | ast.UintType | ast.BoolType):
        raise ValueError(f"{where}constant {name} must be an int, a uint, a float or a bool")
    least, most = _limits(kind, values)
    if not least <= value <= most or value != int(value):
        raise ValueError(f"{where}constant {name} cannot be {value} in its type")
    return int(value)


def _bits(kind: object, values: Mapping[str, Number]) -> int:
    """Return the bits of a type, 0 where it cannot have so many or they are no integer."""
    size = MAX_BITS if (given := getattr(kind, "size", None)) is None else number_of(given, values)
    return size if isinstance(size, int) and 1 <= size <= MAX_BITS else 0


def _limits(kind: object, values: Mapping[str, Number]) -> tuple[int, int]:
    """Return the least and the largest number of a type of integers, or of bool."""
    from openqasm3 import ast

    bits = 1 if isinstance(kind, ast.BoolType) else _bits(kind, values)
    if bits and isinstance(kind, ast.IntType):
        return -(1 << bits >> 1), (1 << bits >> 1) - 1
    return 0, (1 << bits) - 1 if bits else -1


def _write(part: object, values: Mapping[str, Number]) -> None:
    """Write constants out in all expressions below ``part``."""
    from openqasm3 import ast

    if isinstance(part, list):
        for place, one in enumerate(part):
            part[place] = _written(one, values)
    elif isinstance(part, ast.QASMNode):
        if isinstance(part, ast.QuantumGate | ast.IndexedIdentifier) and part.name.name in values:
            raise ValueError(f"{place_of(part)}'{part.name.name}' is a number there")
        for field, one in vars(part).items():
            if field != "span" and isinstance(one, list | ast.QASMNode):
                setattr(part, field, _written(one, values))


def _without(values: Mapping[str, Number], names: set[str]) -> dict[str, Number]:
    """Return constants that no parameter of a gate hides, NaN for one of the language that is."""
    hidden = dict.fromkeys(names & CONSTANTS.keys(), math.nan)
    return {name: one for name, one in values.items() if name not in names} | hidden


def _written(part: Any, values: Mapping[str, Number]) -> Any:
    """Return an expression with its constants written out; other parts are changed in place."""
    from openqasm3 import ast

    if isinstance(part, ast.Identifier) and part.name not in values:
        return part
    is_made = isinstance(part, ast.Identifier | ast.FunctionCall) or (
        isinstance(part, ast.BinaryExpression) and part.op.name in ("**", "%")
    )
    if is_made and (value := number_of(part, values)) is not None:
        return _literal(value, part)
    if not isinstance(part, ast.Identifier):
        _write(part, values)
    return part


def _literal(value: Number, node: ast.QASMNode) -> ast.Expression:
    """Return a number as it would be written where a node stands."""
    from openqasm3 import ast

    found: ast.Expression = ast.FloatLiteral(abs(value))
    if isinstance(value, int):
        found = ast.IntegerLiteral(abs(int(value)))
    found.span = node.span
    if math.copysign(1, value) < 0:
        found = ast.UnaryExpression(ast.UnaryOperator["-"], found)
        found.span = node.span
    return found
