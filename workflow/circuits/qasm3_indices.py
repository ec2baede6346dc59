"""Indices of registers in OpenQASM 3, written out and held to the registers' sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow.circuits.qasm3_program import place_of, whole
from workflow.counted import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openqasm3 import ast


def write_indices(program: ast.Program) -> None:
    """Replace ranges of indices by the indices; none may be beyond its register.

    qiskit-qasm3-import 0.6.0 takes a range for a slice of Python, which leaves out what is beyond a
    register, and of ``q[0:-1]`` or ``q[3:-1:0]`` everything.

    Raises ValueError for an index beyond, and for a range without any.
    """
    from openqasm3 import ast

    sizes: dict[str, int | None] = {}
    for statement in program.statements:
        _write(statement, sizes)
        if isinstance(statement, ast.QubitDeclaration):
            sizes[statement.qubit.name] = _declared(statement.size)
        elif isinstance(statement, ast.ClassicalDeclaration):
            sizes[statement.identifier.name] = _declared(getattr(statement.type, "size", None))
            if isinstance(statement.init_expression, ast.QuantumMeasurement):
                _check_measured(statement.init_expression, statement.identifier, sizes)
        elif isinstance(statement, ast.AliasStatement):
            sizes[statement.target.name] = _size(statement.value, sizes)
        elif isinstance(statement, ast.QuantumMeasurementStatement):
            _check_measured(statement.measure, statement.target, sizes)


def _declared(size: ast.Expression | None) -> int | None:
    """Return how many bits a declaration with this size makes."""
    return 1 if size is None else whole(size, is_angle=False)


def _check_measured(
    measure: ast.QuantumMeasurement, target: object, sizes: Mapping[str, int | None]
) -> None:
    """Raise ValueError where as many bits as qubits are known not to be there.

    Qiskit measures one qubit into each of several bits.
    """
    qubits, bits = _size(measure.qubit, sizes), _size(target, sizes)
    if qubits is not None and bits is not None and qubits != bits:
        what = f"{counted(qubits, 'qubit')} cannot be measured into {counted(bits, 'bit')}"
        raise ValueError(f"{place_of(measure)}{what}")


def _size(node: object, sizes: Mapping[str, int | None]) -> int | None:
    """Return how many bits an expression with written indices has, None where that is unknown."""
    from openqasm3 import ast

    if isinstance(node, ast.Concatenation):
        one, other = _size(node.lhs, sizes), _size(node.rhs, sizes)
        return None if one is None or other is None else one + other
    if isinstance(node, ast.IndexExpression):
        return _indexed(node.index)
    if isinstance(node, ast.IndexedIdentifier):
        return _indexed(node.indices[-1])
    return sizes.get(node.name) if isinstance(node, ast.Identifier) else None


def _indexed(index: ast.IndexElement) -> int | None:
    """Return how many bits a written index takes, None where that is unknown."""
    from openqasm3 import ast

    if isinstance(index, ast.DiscreteSet):
        return len(index.values)
    return None if isinstance(index[0], ast.RangeDefinition) else 1


def _write(part: object, sizes: Mapping[str, int | None]) -> None:
    """Write the indices of all that is below ``part``."""
    from openqasm3 import ast

    if isinstance(part, list):
        for one in part:
            _write(one, sizes)
    elif isinstance(part, ast.IndexedIdentifier):
        size = sizes.get(part.name.name)
        for number, index in enumerate(part.indices):
            found = _written(index, size)
            part.indices[number] = found
            size = len(found.values) if isinstance(found, ast.DiscreteSet) else None
    elif isinstance(part, ast.IndexExpression):
        _write(part.collection, sizes)
        part.index = _written(part.index, _size(part.collection, sizes))
    elif isinstance(part, ast.QASMNode):
        _write(list(vars(part).values()), sizes)


def _written(index: ast.IndexElement, size: int | None) -> ast.IndexElement:
    """Return indices of a register with ``size`` bits, a range as a set of them."""
    from openqasm3 import ast

    if size is None:
        return index
    if isinstance(index, ast.DiscreteSet):
        _check([whole(one, is_angle=False) for one in index.values], -size, size, index)
    elif len(index) == 1 and isinstance(index[0], ast.RangeDefinition):
        if (numbers := _range(index[0], size)) is not None:
            _check(numbers, 0, size, index[0])
            return ast.DiscreteSet([ast.IntegerLiteral(number) for number in numbers])
    elif len(index) == 1:
        _check([whole(index[0], is_angle=False)], -size, size, index[0])
    return index


def _check(numbers: Sequence[int | None], least: int, size: int, node: object) -> None:
    """Raise ValueError for an index that is known and not in [least, size)."""
    for number in numbers:
        if number is not None and not least <= number < size:
            given = number - size * (number < 0 == least)
            bits = counted(size, "bit")
            raise ValueError(
                f"{place_of(node)}index {given} is beyond its register, which has {bits}"
            )


def _range(given: ast.RangeDefinition, size: int) -> list[int] | None:
    """Return the indices of a range, counted from 0, both ends with it; None without constants."""

    def value(node: object, default: int) -> int | None:
        return default if node is None else whole(node, is_angle=False)

    if not (step := value(given.step, 1)):
        return None
    start, end = value(given.start, 0 if step > 0 else -1), value(given.end, -1 if step > 0 else 0)
    if start is None or end is None:
        return None
    start, end = (one + size if one < 0 else one for one in (start, end))
    found = list(range(start, end + (1 if step > 0 else -1), step))
    if not found:
        raise ValueError(
            f"{place_of(given)}the range has no index; a descending one has a negative step: 3:-1:0"
        )
    return found
