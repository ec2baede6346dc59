"""OpenQASM 3 to a circuit of Qiskit, with matrices under controls as matrices."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openqasm3 import ast
from qiskit import QuantumCircuit
from qiskit.circuit.library import UnitaryGate
from qiskit_qasm3_import.converter import ConvertVisitor

from workflow.circuits.matrix_gates import controlled_matrix, is_made_of_matrices

if TYPE_CHECKING:
    from qiskit.circuit import Gate


def converted(program: ast.Program) -> QuantumCircuit:
    """Return the circuit of a program."""
    found: QuantumCircuit = _Converter().convert(program).circuit
    return found


class _Converter(ConvertVisitor):
    """Qiskit's reader except for ``ctrl`` and ``negctrl`` on powers, alone and in definitions.

    A power is a matrix. Qiskit 2.6.2 puts gates in the place of one under controls, which takes
    minutes for eight controls, and in a definition they only approach it (`matrix_gates`).
    """

    def _apply_gate_modifier(
        self, modifier: ast.QuantumGateModifier, gate: Gate, context: Any
    ) -> Gate:
        is_open = modifier.modifier is ast.GateModifierName.negctrl
        if not is_open and modifier.modifier is not ast.GateModifierName.ctrl:
            return super()._apply_gate_modifier(modifier, gate, context)
        given = modifier.argument
        controls = 1 if given is None else self._resolve_constant_int(given, context)
        return _controlled(gate, controls, 0 if is_open else None)


def _controlled(gate: Gate, controls: int, state: int | None) -> Gate:
    """Return a gate under controls; of one that is made of matrices each part is under them."""
    if isinstance(gate, UnitaryGate):
        return UnitaryGate(controlled_matrix(gate, controls, state))
    if not is_made_of_matrices(gate):
        return gate.control(controls, ctrl_state=state)
    definition, held = gate.definition, list(range(controls))
    found = QuantumCircuit(controls + gate.num_qubits)
    phase = QuantumCircuit(global_phase=definition.global_phase).to_gate()
    found.append(phase.control(controls, ctrl_state=state), held)
    for one in definition.data:
        places = [controls + definition.find_bit(qubit).index for qubit in one.qubits]
        found.append(_controlled(one.operation, controls, state), held + places)
    found.name = f"controlled_{gate.name}"
    return found.to_gate()
