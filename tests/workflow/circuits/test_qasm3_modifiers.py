"""Modifiers of OpenQASM 3 on gates of the library and of definitions, against NumPy alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workflow.circuits.qiskit_circuits import gates_of, load_circuit

Matrix = npt.NDArray[Any]
QUBITS = 4
X = np.array([[0, 1], [1, 0]], complex)
Y = np.array([[0, -1j], [1j, 0]])
SX = np.array([[1 + 1j, 1 - 1j], [1 - 1j, 1 + 1j]]) / 2
SWAP = np.eye(4, dtype=complex)[[0, 2, 1, 3]]


def phase(angle: float) -> Matrix:
    return np.diag([1, np.exp(1j * angle)])


def rotation(pauli: Matrix, angle: float) -> Matrix:
    return np.asarray(np.cos(angle / 2) * np.eye(2) - 1j * np.sin(angle / 2) * pauli)


def applied(
    state: Matrix, matrix: Matrix, targets: tuple[int, ...], controls: dict[int, int]
) -> Matrix:
    """Bit j of a row or column number of the matrix is targets[j]; controls have their values."""
    found = np.zeros_like(state)
    for number, amplitude in enumerate(state):
        if any(number >> qubit & 1 != value for qubit, value in controls.items()):
            found[number] += amplitude
            continue
        column = sum((number >> qubit & 1) << bit for bit, qubit in enumerate(targets))
        rest = number & ~sum(1 << qubit for qubit in targets)
        for row in range(len(matrix)):
            moved = rest | sum((row >> bit & 1) << qubit for bit, qubit in enumerate(targets))
            found[moved] += matrix[row, column] * amplitude
    return found


DEFINED = """
gate turned(theta, a) b, c { ctrl @ rx(theta) b, c; negctrl @ ry(a) c, b; }
gate shifted a { gphase(0.5); x a; }
"""
STATEMENTS: tuple[tuple[str, list[tuple[Matrix, tuple[int, ...], dict[int, int]]]], ...] = (
    ("negctrl @ ctrl @ x q[0], q[1], q[2];", [(X, (2,), {0: 0, 1: 1})]),
    ("ctrl @ negctrl(2) @ ry(0.3) q[3], q[0], q[1], q[2];",
     [(rotation(Y, 0.3), (2,), {3: 1, 0: 0, 1: 0})]),
    ("inv @ ctrl @ sx q[1], q[0];", [(SX.conj().T, (0,), {1: 1})]),
    ("pow(0.5) @ ctrl @ x q[3], q[1];", [(SX, (1,), {3: 1})]),
    ("ctrl @ pow(0.5) @ x q[0], q[2];", [(SX, (2,), {0: 1})]),
    ("pow(-0.5) @ s q[3];", [(phase(-np.pi / 4), (3,), {})]),
    ("ctrl @ turned(0.4, 0.7) q[2], q[0], q[1];",
     [(rotation(X, 0.4), (1,), {2: 1, 0: 1}), (rotation(Y, 0.7), (0,), {2: 1, 1: 0})]),
    ("ctrl @ inv @ shifted q[0], q[3];", [(np.exp(-0.5j) * X, (3,), {0: 1})]),
    ("ctrl @ pow(2) @ shifted q[1], q[3];", [(np.exp(1j) * np.eye(2), (3,), {1: 1})]),
    ("negctrl @ gphase(0.2) q[2];", [(np.diag([np.exp(0.2j), 1]), (2,), {})]),
    ("ctrl(2) @ swap q[3], q[1], q[0], q[2];", [(SWAP, (0, 2), {3: 1, 1: 1})]),
    ("ctrl @ cp(0.3) q[2], q[0], q[3];", [(phase(0.3), (3,), {2: 1, 0: 1})]),
)  # fmt: skip


def test_modifiers(tmp_path: Path) -> None:
    """The state after each statement in turn; each begins with another real state."""
    expected = np.zeros(2**QUBITS, complex)
    expected[0] = 1
    text = f'OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[{QUBITS}] q;\n{DEFINED}'
    for number, (statement, gates) in enumerate(STATEMENTS):
        for qubit in range(QUBITS):
            angle = 0.3 + 0.4 * qubit + 0.1 * number
            text += f"ry({angle}) q[{qubit}];\n"
            expected = applied(expected, rotation(Y, angle), (qubit,), {})
        text += statement + "\n"
        for gate in gates:
            expected = applied(expected, *gate)
    path = tmp_path / "one.qasm"
    path.write_text(text)
    found = np.zeros_like(expected)
    found[0] = 1
    for one in gates_of(load_circuit(path), QUBITS):
        found = applied(found, one.matrix, one.targets, {})
    assert abs(np.vdot(found, expected)) > 1 - 1e-9
