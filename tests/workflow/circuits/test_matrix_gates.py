"""Gates of matrices in QPY and OpenQASM 3 are these to the last digits, whatever is near them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from qiskit import QuantumCircuit, qpy
from qiskit.circuit.library import UnitaryGate
from scipy.linalg import expm

from workflow.circuits.qiskit_circuits import CircuitError, check_apart, gates_of, load_circuit

Matrix = npt.NDArray[Any]
SWAP = np.eye(4, dtype=complex)[[0, 2, 1, 3]]


def short_step(qubits: int, seed: int) -> Matrix:
    """An evolution of 1e-6, which Qiskit's gates for two qubits and more are not: identities."""
    rng = np.random.default_rng(seed)
    order = 2**qubits
    parts = rng.standard_normal((order, order, 2)).view(complex)[..., 0]
    return np.asarray(expm(-1e-6j * (parts + parts.conj().T)))


def controlled(matrix: Matrix, value: int) -> Matrix:
    """The control is the lowest qubit."""
    found = np.eye(2 * len(matrix), dtype=complex)
    found[value::2, value::2] = matrix
    return found


def written(gate: Any, qubits: int) -> bytes:
    circuit, file = QuantumCircuit(qubits), io.BytesIO()
    circuit.append(gate, range(qubits))
    qpy.dump(circuit, file)
    return file.getvalue()


def matrix_in(path: Path) -> Matrix:
    """The product of a circuit's gates, each of which is on all of its qubits."""
    circuit = load_circuit(path)
    found = np.eye(2**circuit.num_qubits)
    for gate in gates_of(circuit, 10):
        assert gate.targets == tuple(range(circuit.num_qubits))
        found = gate.matrix @ found
    return np.asarray(found)


def composite(matrix: Matrix) -> Any:
    """A gate of two others, behind one that is not called."""
    circuit = QuantumCircuit(2, name="composite")
    for number in range(2):
        inner = QuantumCircuit(2, name=f"inner{number}")
        inner.append(UnitaryGate(matrix), [number, 1 - number])
        circuit.append(inner.to_gate(), [0, 1])
    return circuit.to_gate()


STEP = short_step(2, 1)
TURNED = SWAP @ STEP @ SWAP


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        (UnitaryGate(STEP), STEP),
        (UnitaryGate(short_step(3, 2)), short_step(3, 2)),
        (UnitaryGate(STEP).control(ctrl_state=0), controlled(STEP, 0)),
        (UnitaryGate(STEP).control(annotated=True), controlled(STEP, 1)),
        (composite(STEP), TURNED @ STEP),
        (composite(STEP).control(annotated=True), controlled(TURNED @ STEP, 1)),
    ],
)
def test_qpy(tmp_path: Path, gate: Any, expected: Matrix) -> None:
    path = tmp_path / "c.qpy"
    path.write_bytes(written(gate, len(expected).bit_length() - 1))
    np.testing.assert_allclose(matrix_in(path), expected, rtol=0, atol=1e-14)


def test_a_power_of_openqasm_3(tmp_path: Path) -> None:
    path = tmp_path / "c.qasm"
    head = 'OPENQASM 3.0;\ninclude "stdgates.inc";\n'
    expected = expm(0.5j * np.pi * 1e-6 * (np.eye(4) - SWAP))
    path.write_text(f"{head}qubit[2] q;\npow(1e-6) @ swap q[0], q[1];\n")
    np.testing.assert_allclose(matrix_in(path), expected, rtol=0, atol=1e-14)
    path.write_text(f"{head}qubit[3] q;\nnegctrl @ pow(1e-6) @ swap q[0], q[1], q[2];\n")
    np.testing.assert_allclose(matrix_in(path), controlled(expected, 0), rtol=0, atol=1e-14)


def test_a_matrix_is_not_taken_apart(tmp_path: Path) -> None:
    """Qiskit's gates in its place would be others."""
    path = tmp_path / "c.qpy"
    path.write_bytes(written(UnitaryGate(short_step(3, 2)), 3))
    (one,) = load_circuit(path).data
    with pytest.raises(CircuitError, match="fuse must be at least 3 for gate matrix_0"):
        check_apart(one.operation, [0, 1, 2], 2)


def test_a_matrix_of_many_qubits_is_refused(tmp_path: Path) -> None:
    path, turn = tmp_path / "c.qpy", UnitaryGate(short_step(1, 3))
    path.write_bytes(written(turn.control(9, annotated=True), 10))
    load_circuit(path)
    path.write_bytes(written(turn.control(10, annotated=True), 11))
    with pytest.raises(CircuitError, match="is of a matrix and has 11 qubits with its controls"):
        load_circuit(path)
