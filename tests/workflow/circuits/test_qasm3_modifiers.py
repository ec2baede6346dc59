"""Modifiers of OpenQASM 3 on gates of the library and of definitions, against NumPy alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from workflow.circuits.qiskit_circuits import CircuitError, gates_of, load_circuit

Matrix = npt.NDArray[Any]
QUBITS = 4
X = np.array([[0, 1], [1, 0]], complex)
Y = np.array([[0, -1j], [1j, 0]])
Z = np.diag([1 + 0j, -1])
SX = np.array([[1 + 1j, 1 - 1j], [1 - 1j, 1 + 1j]]) / 2
SWAP = np.eye(4, dtype=complex)[[0, 2, 1, 3]]


def phase(angle: float) -> Matrix:
    return np.diag([1, np.exp(1j * angle)])


def rotation(pauli: Matrix, angle: float) -> Matrix:
    return np.asarray(np.cos(angle / 2) * np.eye(2) - 1j * np.sin(angle / 2) * pauli)


def euler(theta: float, phi: float, lam: float) -> Matrix:
    """Return u3 of OpenQASM 3, whose determinant is 1; U has a phase besides."""
    return rotation(Z, phi) @ rotation(Y, theta) @ rotation(Z, lam)


def root(matrix: Matrix) -> Matrix:
    """Return the square root whose eigenvalues have arguments of -90 to 90 degrees."""
    values, vectors = np.linalg.eig(matrix)
    return np.asarray(vectors @ np.diag(np.sqrt(values)) @ np.linalg.inv(vectors))


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
gate sxdg(a) b { rz(a) b; }
gate within(theta, a) b { U(theta, a, 0.2) b; }
gate powers(b, a) c, d { pow(3) @ u3(a, b, a*b) c; ctrl @ pow(0.5) @ within(a, b) d, c; }
gate inner(b) c, d { negctrl @ within(b, 0.1) c, d; }
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
    ("pow(3) @ negctrl @ sdg q[1], q[2];", [(phase(-1.5 * np.pi), (2,), {1: 0})]),
    ("pow(-1) @ negctrl @ sx q[3], q[0];", [(SX.conj().T, (0,), {3: 0})]),
    ("negctrl @ gphase(0.2) q[2];", [(np.diag([np.exp(0.2j), 1]), (2,), {})]),
    ("ctrl(2) @ swap q[3], q[1], q[0], q[2];", [(SWAP, (0, 2), {3: 1, 1: 1})]),
    ("ctrl @ cp(0.3) q[2], q[0], q[3];", [(phase(0.3), (3,), {2: 1, 0: 1})]),
    ("negctrl @ u3(0.4, 0.5, 0.6) q[1], q[2];", [(euler(0.4, 0.5, 0.6), (2,), {1: 0})]),
    ("ctrl @ u2(0.5, 0.6) q[3], q[0];", [(euler(np.pi / 2, 0.5, 0.6), (0,), {3: 1})]),
    ("ctrl @ U(0.4, 0.5, 0.6) q[3], q[0];",
     [(np.exp(0.75j) * euler(0.4, 0.5, 0.6), (0,), {3: 1})]),
    ("ctrl @ u3(-pi/3, 1, 2) q[2], q[1];", [(euler(-np.pi / 3, 1, 2), (1,), {2: 1})]),
    ("ctrl @ U(1, 2, 3) q[1], q[2];", [(np.exp(3j) * euler(1, 2, 3), (2,), {1: 1})]),
    ("inv @ ctrl @ U(1, 2, 3) q[1], q[2];",
     [(np.exp(-3j) * euler(-1, -3, -2), (2,), {1: 1})]),
    ("inv @ u2(0.5, 0.6) q[1];", [(euler(-np.pi / 2, -0.6, -0.5), (1,), {})]),
    ("inv @ cu(0.4, 0.5, 0.6, 0.7) q[3], q[1];",
     [(np.exp(-1.25j) * euler(-0.4, -0.6, -0.5), (1,), {3: 1})]),
    ("ctrl @ within(0.4, 0.5) q[2], q[0];",
     [(np.exp(0.55j) * euler(0.4, 0.5, 0.2), (0,), {2: 1})]),
    ("inv @ ctrl @ cu(0.4, 0.5, 0.6, 0.7) q[0], q[3], q[1];",
     [(np.exp(-1.25j) * euler(-0.4, -0.6, -0.5), (1,), {0: 1, 3: 1})]),
    ("ctrl @ sxdg(0.7) q[3], q[1];", [(rotation(Z, 0.7), (1,), {3: 1})]),
    ("ctrl @ pow(0.5) @ p(9) q[2], q[1];", [(phase(4.5 - np.pi), (1,), {2: 1})]),
    ("ctrl @ pow(1.0/3) @ pow(-2) @ z q[2], q[1];", []),
    ("powers(0.5, 0.4) q[1], q[2];",
     [(np.linalg.matrix_power(euler(0.4, 0.5, 0.2), 3), (1,), {}),
      (root(np.exp(0.55j) * euler(0.4, 0.5, 0.2)), (1,), {2: 1})]),
    ("ctrl @ inv @ inner(0.3) q[1], q[0], q[3];",
     [(np.exp(-0.3j) * euler(-0.3, -0.2, -0.1), (3,), {1: 1, 0: 0})]),
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


def test_powers_under_controls(tmp_path: Path) -> None:
    """Definitions have gates near the identity, which Qiskit controls as if they were that."""
    part = 5e-6
    halves = (np.eye(4) + SWAP) / 2, (np.eye(4) - SWAP) / 2
    near = halves[0] + np.exp(1j * np.pi * part) * halves[1]
    text = f"""OPENQASM 3.0; include "stdgates.inc"; qubit[9] q;
        gate near(a) c, d {{ gphase(2*a); pow({part}) @ swap c, d; rx(a) c; }}
        gate outer(a) c, d, e {{ negctrl @ near(-a) c, d, e; }}
        ctrl(8) @ pow(0.5) @ x q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7], q[8];
        negctrl(2) @ ctrl @ near(0.3) q[4], q[5], q[1], q[2], q[3];
        inv @ ctrl @ outer(0.4) q[8], q[1], q[2], q[0];
    """
    path = tmp_path / "one.qasm"
    path.write_text(text)
    rng = np.random.default_rng(5)
    state = rng.standard_normal((2, 512)).T @ [1, 1j]
    found = state
    for one in gates_of(load_circuit(path), 9):
        found = applied(found, one.matrix, one.targets, {})
    expected = applied(state, SX, (8,), dict.fromkeys(range(8), 1))
    both = np.exp(0.6j) * np.kron(np.eye(2), rotation(X, 0.3)) @ near
    expected = applied(expected, both, (2, 3), {4: 0, 5: 0, 1: 1})
    back = (np.exp(-0.8j) * np.kron(np.eye(2), rotation(X, -0.4)) @ near).conj().T
    expected = applied(expected, back, (2, 0), {8: 1, 1: 0})
    overlap = np.vdot(found, expected)
    assert np.abs(found * overlap / abs(overlap) - expected).max() < 1e-9 * np.abs(state).max()


@pytest.mark.parametrize("library", ["", 'include "stdgates.inc";'])
def test_a_gate_of_the_language_before_the_library(tmp_path: Path, library: str) -> None:
    path = tmp_path / "one.qasm"
    path.write_text(f"OPENQASM 3.0; qubit[2] q; ctrl @ U(0.3, 0.4, 0.5) q[0], q[1]; {library}")
    found = np.eye(4, dtype=complex)
    for one in gates_of(load_circuit(path), 2):
        found = np.stack([applied(row, one.matrix, one.targets, {}) for row in found])
    expected = [
        applied(row, np.exp(0.6j) * euler(0.3, 0.4, 0.5), (1,), {0: 1})
        for row in np.eye(4, dtype=complex)
    ]
    assert abs(np.vdot(found, expected)) > 4 - 1e-9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("turned(0.4) q[0], q[1];", "line 4, column 0: gate turned takes 2 angles"),
        ("turned(0.4, popcount(1)) q[0], q[1];", "made of numbers by + - * / % **, got 1 of 2"),
        ("turned(0.4, 1/0.0) q[0], q[1];", "line 4, column 12: division by zero"),
        ("gate x a { h a; } ctrl @ x q[0], q[1];", "line 4, column 0: 'x' is already defined"),
        ("gate rx(a) b { inv @ rz(a) b; }", "line 4, column 0: 'rx' is already defined"),
        ("gate turned(a) b { inv @ rz(a) b; }", "line 4, column 0: 'turned' is already defined"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "one.qasm"
    definition = DEFINED.strip().splitlines()[0]
    path.write_text(f'OPENQASM 3.0; include "stdgates.inc";\nqubit[2] q;\n{definition}\n{text}')
    with pytest.raises(CircuitError) as error:
        load_circuit(path)
    assert message in str(error.value)
