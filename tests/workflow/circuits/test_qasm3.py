"""Circuits in OpenQASM 3: the same state as Qiskit's, or an error that names the statement."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import qiskit.qasm3
from qiskit import QuantumCircuit
from qiskit.circuit.library import standard_gates
from qiskit.quantum_info import Operator

from workflow.circuits.qasm3_text import as_version_2, is_version_3
from workflow.circuits.qiskit_circuits import CircuitError, load_circuit

HEAD = 'OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[3] q;\n'
STDGATES = (
    "p(0.3) q[0];",
    "x q[0];",
    "y q[0];",
    "z q[0];",
    "h q[0];",
    "s q[0];",
    "sdg q[0];",
    "t q[0];",
    "tdg q[0];",
    "sx q[0];",
    "rx(0.3) q[0];",
    "ry(0.3) q[0];",
    "rz(0.3) q[0];",
    "cx q[0], q[1];",
    "cy q[0], q[1];",
    "cz q[0], q[1];",
    "cp(0.3) q[0], q[1];",
    "crx(0.3) q[0], q[1];",
    "cry(0.3) q[0], q[1];",
    "crz(0.3) q[0], q[1];",
    "ch q[0], q[1];",
    "swap q[0], q[1];",
    "ccx q[0], q[1], q[2];",
    "cswap q[0], q[1], q[2];",
    "cu(0.1, 0.2, 0.3, 0.4) q[0], q[1];",
    "CX q[0], q[1];",
    "phase(0.3) q[0];",
    "cphase(0.3) q[0], q[1];",
    "id q[0];",
    "u1(0.3) q[0];",
    "u2(0.3, 0.4) q[0];",
    "u3(0.3, 0.4, 0.5) q[0];",
    "U(0.3, 0.4, 0.5) q[0];",
)
"""Every gate of stdgates.inc, and U."""


def loaded(path: Path, text: str) -> QuantumCircuit:
    path.write_text(text)
    return load_circuit(path)


def same(one: QuantumCircuit, other: QuantumCircuit) -> bool:
    """Up to a global phase, and without the measurements at the end."""
    found = [circuit.remove_final_measurements(inplace=False) for circuit in (one, other)]
    a, b = (Operator(circuit).data for circuit in found)
    return bool(abs(abs(np.vdot(a, b)) - len(a)) < 1e-9)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "one.qasm"


def test_what_qiskit_exports(path: Path) -> None:
    """With gates that it defines in the text, rzz and ryy, and a measurement of all."""
    circuit = QuantumCircuit(3, 3)
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.rzz(0.7, 1, 2)
    circuit.ryy(-0.2, 0, 2)
    circuit.append(standard_gates.CU3Gate(0.1, 0.2, 0.3), [2, 0])
    circuit.barrier()
    circuit.u(np.pi / 3, 0.1, 0.2, 2)
    expected = circuit.copy()
    circuit.measure(range(3), range(3))
    text = qiskit.qasm3.dumps(circuit)
    assert is_version_3(text)
    found = loaded(path, text)
    assert same(found, expected)
    assert found.count_ops()["measure"] == 3


@pytest.mark.parametrize("gate", STDGATES)
def test_every_gate_of_the_library(path: Path, gate: str) -> None:
    """It is the one of the same call in OpenQASM 2, where that has it."""
    found = loaded(path, HEAD + gate)
    name = gate.partition(" ")[0].partition("(")[0]
    named = {"phase": "p", "cphase": "cp"}.get(name, name)
    text = 'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[3];\n' + gate.replace(name, named, 1)
    assert same(found, loaded(path, text))


@pytest.mark.skipif(
    find_spec("qiskit_qasm3_import") is None, reason="qiskit-qasm3-import is not installed"
)
@pytest.mark.parametrize("gate", [
    *STDGATES,
    "rx(3*pi/4) q[0];", "rx(-(pi + 1)/2) q[1];", "rz(tau/8 - euler) q[2];", "rx(π/7) q[0];",
    "gate g(a, b) x, y { rx(a/2) x; cx x, y; rz(b) y; }\ng(0.3, pi) q[0], q[2];",
    "h q;", "qubit r;\nh r;", "qubit r;\ncx r, q[1];", "qubit r;\nbit c;\nh r;\nc = measure r;",
    "qubit r;\ngate g r { h r; }\ng r;", "bit[3] c;\nc = measure q;", "bit c = measure q[1];",
    "gate rzz(a) x, y { cx x, y; rz(a) y; cx x, y; }\nrzz(0.3) q[0], q[1];",
])  # fmt: skip
def test_the_library_of_qiskit_reads_the_same(path: Path, gate: str) -> None:
    text = HEAD + gate
    assert same(loaded(path, text), qiskit.qasm3.loads(text))


@pytest.mark.parametrize(
    ("expression", "value"),
    [("2.0**3", 8.0), ("sin(0.3)*cos(0.2)", np.sin(0.3) * np.cos(0.2)), ("log(2.0)", np.log(2)),
     ("arctan(0.5)", np.arctan(0.5)), ("sqrt(2.0)/2", 0.5**0.5)],
)  # fmt: skip
def test_functions_and_powers(path: Path, expression: str, value: float) -> None:
    """Those of the language, of which the library of Qiskit has none."""
    found = loaded(path, f"{HEAD}rx({expression}) q[0];")
    assert float(found.data[0].operation.params[0]) == pytest.approx(value, rel=1e-15)


REFUSED = (
    ("for int i in [0:2] { h q[i]; }", "'for' of OpenQASM 3 is not read"),
    ("if (true) { h q[0]; }", "'if' of OpenQASM 3"),
    ("def f() { }", "'def' of OpenQASM 3"),
    ("const int n = 3;", "'const' of OpenQASM 3"),
    ("ctrl @ x q[0], q[1];", "a modifier of gates"),
    ("inv @ s q[0];", "a modifier of gates"),
    ("gphase(0.3);", "'gphase' of OpenQASM 3"),
    ("measure q;", "a measurement must go to bits"),
    ("x = 3;", "only measurements are assigned"),
    ("qubit[n] r;", "registers are declared as"),
    ("qubit r = measure q;", "registers are declared as"),
    ("rx(1/2) q[0];", "a division of whole numbers"),
    ("rx(pi + 1/2) q[0];", "a division of whole numbers"),
    ("rx((1 + 2)/4*pi) q[0];", "a division of whole numbers"),
    ("rx(2^3) q[0];", "exclusive or"),
    ('include "/etc/passwd";', "only 'stdgates.inc' may be included"),
    ("#pragma x", "begins no word"),
    ("h q[0]", "the statement has no end"),
    ("qubit[1000000000] r;", "qubits"),
    ("nothing q[0];", "is not OpenQASM 2"),
)


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_refused(path: Path, text: str, message: str) -> None:
    with pytest.raises(CircuitError) as error:
        loaded(path, HEAD + text)
    assert message in str(error.value)
    assert "line 4" in str(error.value) or "<input>:4" in str(error.value)


def test_definitions_that_double(path: Path) -> None:
    doubling = "gate g0 a { h a; }\n" + "".join(
        f"gate g{i + 1} a {{ g{i} a; g{i} a; }}\n" for i in range(50)
    )
    with pytest.raises(CircuitError, match=r"stands for \d+ gates or more"):
        loaded(path, HEAD + doubling + "g50 q[0];")


def test_lines_and_comments() -> None:
    text = "/* of\ntwo lines */ OPENQASM 3; // x\n\nqubit[2] q;\nh q[0];"
    assert is_version_3(text)
    assert as_version_2(text) == "\nOPENQASM 2.0; \n\nqreg q[2]; \nh q [ 0 ] ; "
    assert not is_version_3("OPENQASM 2.0;")
    assert not is_version_3("// OPENQASM 3;\nOPENQASM 2.0;")
