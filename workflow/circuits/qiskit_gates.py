"""Gates of a circuit of Qiskit as OpenQASM 2 has them: called by names, with numbers, defined."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

from qiskit import QuantumCircuit
from qiskit.circuit import (
    AnnotatedOperation,
    Delay,
    Gate,
    Instruction,
    Operation,
    ParameterExpression,
)
from qiskit.quantum_info import Clifford

from workflow.circuits.matrix_gates import Matrices, is_of_library, matrix_of
from workflow.circuits.qasm3_modifiers import OF_FILE

Done = dict[int, tuple[Operation, Operation | None]]
"""Maps the identity of an operation to the one that replaces it, or to None where it stays."""


def take_apart(circuit: QuantumCircuit, matrices: Matrices, done: Done) -> bool:
    """Replace the operations that OpenQASM 2 cannot call by gates without parameters.

    Annotated operations, Clifford operators and gates of strings become their definitions; gates of
    a matrix, also within others, become those of ``matrices``. Global phases and delays are left
    out. ``done`` has what became of operations, by their identity. Returns whether anything
    changed. Raises ValueError for a reset within an operation.
    """
    changed = False
    for place, instruction in reversed(list(enumerate(circuit.data))):
        is_phase = not instruction.qubits and instruction.name == "global_phase"
        if is_phase or isinstance(instruction.operation, Delay):
            del circuit.data[place]
            changed = True
        elif not instruction.is_standard_gate():
            changed |= _replace(circuit, place, done, lambda one: _apart(one, matrices, done))
    return changed


def _replace(
    circuit: QuantumCircuit, place: int, done: Done,
    replacement: Callable[[Operation], Operation | None],
) -> bool:  # fmt: skip
    """Replace an operation by its ``replacement``, made once; return whether it has one."""
    instruction = circuit.data[place]
    operation = instruction.operation
    if id(operation) not in done:
        done[id(operation)] = operation, replacement(operation)
    found = done[id(operation)][1]
    if found is not None:
        circuit.data[place] = instruction.replace(operation=found)
    return found is not None


def _apart(operation: Operation, matrices: Matrices, done: Done) -> Gate | None:
    if (matrix := matrix_of(operation)) is not None:
        return matrices.gate(matrix)
    definition = getattr(operation, "definition", None)
    if isinstance(operation, Clifford):
        definition = operation.to_circuit()
    elif isinstance(operation, AnnotatedOperation):
        from qiskit.transpiler.passes import HighLevelSynthesis

        alone = QuantumCircuit(operation.num_qubits)
        alone.append(_named_apart(operation, lambda _: True, {}) or operation, alone.qubits)
        definition = HighLevelSynthesis()(alone)
    if definition is None or hasattr(operation, "_qasm_decomposition"):
        return None
    if any(within.name == "reset" for within in definition.data):
        raise ValueError(
            f"{operation.name} has a reset, which is not unitary; prepare_state has none"
        )
    called = isinstance(operation, Instruction) and all(
        isinstance(p, Real | ParameterExpression) for p in operation.params
    )
    if called and all(one.is_standard_gate() and one.qubits for one in definition.data):
        return None  # most of them, without a copy
    inner = definition.copy()
    if not take_apart(inner, matrices, done) and called:
        return None
    gate = Gate(operation.name, operation.num_qubits, [])
    gate.definition = inner
    return gate


def name_apart(circuit: QuantumCircuit, taken: Callable[[str], bool], done: Done) -> bool:
    """Rename gates, and those within, that are not the library's but have a name that is taken.

    Qiskit writes a gate of such a name without its definition, and controls it as if it were the
    library's. ``done`` has what became of operations, by their identity. Returns whether any
    changed.
    """
    changed = False
    for place, instruction in enumerate(circuit.data):
        if not instruction.is_standard_gate():
            changed |= _replace(circuit, place, done, lambda one: _named_apart(one, taken, done))
    return changed


def _named_apart(
    operation: Operation, taken: Callable[[str], bool], done: Done
) -> Operation | None:
    """Return an operation with the names that `name_apart` gives; None where it keeps its own."""
    if isinstance(operation, AnnotatedOperation):
        base = _named_apart(operation.base_op, taken, done)
        return None if base is None else AnnotatedOperation(base, operation.modifiers)
    if is_of_library(operation):
        return None
    if (definition := getattr(operation, "definition", None)) is None:
        return None
    is_within = name_apart(definition, taken, done)
    name = f"{operation.name}{OF_FILE}" if taken(operation.name) else operation.name
    if is_within:  # a gate with open controls makes its definition anew, with the names it had
        named = Gate(name, operation.num_qubits, [])
        named.definition = definition
        return named
    return None if name == operation.name else operation.copy(name=name)
