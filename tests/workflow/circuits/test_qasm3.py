"""Circuits in OpenQASM 3: the same state as in OpenQASM 2, or an error that says what and where."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import qiskit.qasm3
from circuits_read_here import BY_A_PROCESS
from qiskit import QuantumCircuit
from qiskit.circuit.library import HGate, standard_gates
from qiskit.quantum_info import Operator

from workflow.circuits import qiskit_text
from workflow.circuits.qiskit_circuits import CircuitError, gates_of, load_circuit
from workflow.circuits.qiskit_text import form_of

HEAD = 'OPENQASM 3.0;\ninclude "stdgates.inc";\nqubit[3] q;\n'
STDGATES = """
p(0.3) q[0]; x q[0]; y q[0]; z q[0]; h q[0]; s q[0]; sdg q[0]; t q[0]; tdg q[0]; sx q[0];
rx(0.3) q[0]; ry(0.3) q[0]; rz(0.3) q[0]; cx q[0], q[1]; cy q[0], q[1]; cz q[0], q[1];
cp(0.3) q[0], q[1]; crx(0.3) q[0], q[1]; cry(0.3) q[0], q[1]; crz(0.3) q[0], q[1]; ch q[0], q[1];
swap q[0], q[1]; ccx q[0], q[1], q[2]; cswap q[0], q[1], q[2]; cu(0.1, 0.2, 0.3, 0.4) q[0], q[1];
CX q[0], q[1]; p(0.3) q[0]; cp(0.3) q[0], q[1]; id q[0]; u1(0.3) q[0]; u2(0.3, 0.4) q[0];
u3(0.3, 0.4, 0.5) q[0]; U(0.3, 0.4, 0.5) q[0];
"""
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


def test_what_qiskit_exports(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text defines gates, rzz and ryy, and measures all qubits.

    A process within limits reads it, as it reads a user's.
    """
    monkeypatch.setattr(qiskit_text, "_read", BY_A_PROCESS)
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
    found = loaded(path, qiskit.qasm3.dumps(circuit))
    assert same(found, expected)
    assert found.count_ops()["measure"] == 3


def test_the_library_and_what_version_2_lacks(path: Path) -> None:
    """Each gate of the library as in OpenQASM 2; aliases, modifiers and a phase as Qiskit's."""
    expected = loaded(path, f'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[3];\n{STDGATES}')
    further = """
        let pair = q[1:2]; h pair;
        ctrl @ inv @ s q[0], q[2]; negctrl @ x q[1], q[0]; pow(2) @ t q[1];
        gate g(a) b { gphase(a); rx(a/2) b; } ctrl @ g(0.3) q[2], q[1];
        ctrl @ pow(0.5) @ h q[0], q[2]; inv @ pow(2) @ ctrl @ sx q[2], q[1];
        rx(-(pi + 1)/2) q[1]; ry(8/2*pi/8 + 3.0/4) q[1/2]; rz(tau/8 - euler) q[2]; rx(π/7) q[0];
        /* two
        lines */ bit c = measure q[1]; // the last
    """
    found = loaded(path, f"// a circuit\n{HEAD}{STDGATES}{further}")
    expected.h([1, 2])
    expected.cp(-np.pi / 2, 0, 2)
    expected.cx(1, 0, ctrl_state=0)
    expected.s(1)
    expected.p(0.3, 2)
    expected.crx(0.15, 2, 1)
    expected.append(HGate().power(0.5).control(), [0, 2])
    expected.cx(2, 1)
    expected.rx(-(np.pi + 1) / 2, 1)
    expected.ry(np.pi / 2 + 0.75, 0)
    expected.rz(np.pi / 4 - np.e, 2)
    expected.rx(np.pi / 7, 0)
    assert same(found, expected)


def test_parameters_in_another_order_than_the_alphabet(path: Path) -> None:
    """Gates are called alone, by another gate, under modifiers, and twice."""
    gates = """
        gate turn(theta, phi, λ, a) b, c { u3(theta, phi, λ) b; rx(a - theta) c; cp(phi) b, c; }
        gate both(z, x) b, c { x b; rz(x) b; turn(z, -x, x - z, 2*x) c, b; }
        turn(0.1, 0.2, 0.3, 0.4) q[0], q[1]; both(0.5, 0.7) q[2], q[0];
        inv @ turn(1.1, 1.2, 1.3, 1.4) q[2], q[1]; ctrl @ turn(0.9, 0.8, 0.7, 0.6) q[1], q[0], q[2];
    """

    def turn(theta: float, phi: float, lam: float, a: float) -> QuantumCircuit:
        circuit = QuantumCircuit(2, global_phase=-(phi + lam) / 2)
        circuit.u(theta, phi, lam, 0)
        circuit.rx(a - theta, 1)
        circuit.cp(phi, 0, 1)
        return circuit

    expected = QuantumCircuit(3)
    expected.append(turn(0.1, 0.2, 0.3, 0.4).to_gate(), [0, 1])
    expected.x(2)
    expected.rz(0.7, 2)
    expected.append(turn(0.5, -0.7, 0.2, 1.4).to_gate(), [0, 2])
    expected.append(turn(1.1, 1.2, 1.3, 1.4).to_gate().inverse(), [2, 1])
    expected.append(turn(0.9, 0.8, 0.7, 0.6).to_gate().control(), [1, 0, 2])
    assert same(loaded(path, HEAD + gates), expected)


def test_angles_that_are_no_linear_function_of_parameters(path: Path) -> None:
    written = (
        "a*b", "a**2 + b", "2**a", "sin(a) - b", "a + 2", "2/a", "(a + b)*(a - b)", "-b % a", "b/2",
        "a - a", "0*b",
    )  # fmt: skip

    def angles(a: float, b: float) -> list[float]:
        rest = math.fmod(-b, a)  # with the sign of the dividend
        squares = (a + b) * (a - b)
        return [a * b, a**2 + b, 2**a, math.sin(a) - b, a + 2, 2 / a, squares, rest, b / 2, 0, 0]

    # A gate for each, since one such angle makes every angle of its gate a number.
    gates = "gate phased(a, b) c { gphase(a*b); }\n"
    calls = "ctrl @ phased(0.3, 0.7) q[1], q[0];\n"
    expected = QuantumCircuit(3)
    expected.p(0.21, 1)
    pairs = zip(angles(0.3, 0.7), angles(0.5, 0.3), strict=True)
    for n, (text, (own, called)) in enumerate(zip(written, pairs, strict=True)):
        gates += f"gate one{n}(b, a) c {{ rz({text}) c; x c; }} "
        gates += f"gate two{n}(a) c {{ one{n}(a, 0.5) c; }}\n"
        calls += f"one{n}(0.7, 0.3) q[0]; ctrl @ two{n}(0.3) q[1], q[0];\n"
        expected.rz(own, 0)
        expected.x(0)
        expected.crz(called, 1, 0)
        expected.cx(1, 0)
    assert same(loaded(path, f"{HEAD}{gates}{calls}"), expected)


def test_own_gates_under_names_of_the_library_of_version_2(path: Path) -> None:
    """The library of OpenQASM 3 has none of these names, so a file may define them as it likes."""
    gates = """
        gate rxx(t) a, b { rx(t) a; ry(2*t) b; }
        gate rccx a, b { rxx(0.2) b, a; cx a, b; }
        rxx(0.4) q[0], q[1]; rccx q[2], q[1]; ctrl @ rxx(0.5) q[1], q[0], q[2];
    """
    expected = QuantumCircuit(3)
    expected.rx(0.4, 0)
    expected.ry(0.8, 1)
    expected.rx(0.2, 1)
    expected.ry(0.4, 2)
    expected.cx(2, 1)
    expected.crx(0.5, 1, 0)
    expected.cry(1.0, 1, 2)
    assert same(loaded(path, HEAD + gates), expected)
    operation = "gate store(t) a, b { rx(t) a; ry(2*t) b; } store(0.4) q[0], q[1];"
    assert loaded(path, HEAD + operation).decompose().count_ops() == {"rx": 1, "ry": 1}


INDICES = (
    ("q[0:2]", [0, 1, 2]), ("q[0:-1]", [0, 1, 2, 3, 4]), ("q[-3:-1]", [2, 3, 4]),
    ("q[4:-1:0]", [4, 3, 2, 1, 0]), ("q[-1:-2:0]", [4, 2, 0]), ("q[1:2:4]", [1, 3]),
    ("q[:1]", [0, 1]), ("q[3:]", [3, 4]), ("all[-2:-1]", [6, 7]), ("q[1:3][0:1]", [1, 2]),
)  # fmt: skip
"""Ranges begin and end with their ends, which count from the end where they are negative."""


def test_ranges_of_indices(path: Path) -> None:
    head = f"{HEAD.replace('qubit[3]', 'qubit[5]')}qubit[3] r; bit[5] c; let all = q ++ r;\n"
    found = loaded(path, head + "".join(f"h {text};\n" for text, _ in INDICES))
    qubits = [found.find_bit(one.qubits[0]).index for one in found.data]
    assert qubits == [qubit for _, each in INDICES for qubit in each]
    measured = loaded(path, f"{head}c[0:1] = measure q[-2:-1];")
    bits = [(one.qubits[0], one.clbits[0]) for one in measured.data]
    assert bits == list(zip(measured.qubits[3:5], measured.clbits[:2], strict=True))


REFUSED = (
    pytest.param("one q[0];", "line 4, column 0: gate 'one' is not defined", id="undefined"),
    pytest.param(
        "x q[0]; h q[1:4];", "line 4, column 12: index 3 is beyond its register", id="range"
    ),
    pytest.param("rx(-3/4*pi) q[0];", "line 4, column 3: -3/4 is 0 in OpenQASM 3", id="integers"),
    *(
        pytest.param(text, message, marks=pytest.mark.exhaustive, id=text[:20])
        for text, message in (
            ("x q[0]; rx q[0];", "line 4, column 8: RXGate.__init__() missing 1 required"),
            ("cx q[0], q[0];", "line 4, column 0: duplicate bit arguments"),
            ("h q[-5:1];", "line 4, column 4: index -5 is beyond its register, which has 3 bits"),
            ("let a = q[0:1]; h a[2];", "index 2 is beyond its register, which has 2 bits"),
            ("h q[{0, 3}];", "index 3 is beyond"),
            ("h q[2:0];", "the range has no index"),
            ("h q[0]", "line 4, column 6: unexpected '<EOF>'"),
            ("h q[0;", "line 4, column 5: unexpected ';'"),
            ("?", "line 4, column 0: token recognition error"),
            ("bit c = measure q[0]; if (c) { x q[1]; }", "line 4, column 22: if_else is"),
            (
                "if (true) { x q[1]; }",
                "line 4, column 0: if_else is classical control, which is not a "
                "unitary evolution; where a measured bit decides, its qubit may: `cx q[0], q[2]`",
            ),
            ("box { h q[0]; }", "line 4, column 0: box is classical control"),
            ("def f(qubit a) { h a; }", "line 4, column 0: node of type SubroutineDefinition"),
            ("input float b; input float a; rx(a + b) q[0];", "without a value: a, b; write"),
            ("bit[2] c; c = measure q[0];", "line 4, column 14: 1 qubit cannot be measured into 2"),
            ("bit[2] c = measure q;", "line 4, column 11: 3 qubits cannot be measured into 2 bits"),
            ("bit c; c = measure q[0:1];", "2 qubits cannot be measured into 1 bit"),
            ("measure q;", "line 4, column 0: measurements must save their result"),
            ("rx(popcount(3)) q[0];", "angles made of numbers by + - * / % **"),
            ("rx(1/0) q[0];", "division or modulo by zero"),
            ("gate g(a) b { rx((2 + 1)/2) b; }", "line 4, column 17: 3/2 is 1 in OpenQASM 3"),
            ("gate g(a) b { rx(a*popcount(a)) b; } g(1) q[0];", "column 17: the angle is not"),
            ("gate g(a) b { rx(log(a)*a) b; } g(0) q[0];", "column 17: log: math domain error"),
            ("gate g(a) b { rx(a*a) b; } g(1, 2) q[0];", "takes 1 angle made of numbers"),
            ("pow(1/2) @ x q[0];", "for a fraction write 1.0/2"),
            ("gphase(pi*(1/-8));", "1/-8 is 0 in OpenQASM 3"),
            (f"rx({'(' * 999}1{')' * 999}) q[0];", "maximum recursion depth"),
            ('include "/etc/passwd";', "line 4, column 0: non-stdgates imports"),
            ("qubit[40] r;", "has 43 qubits; there must be 1 to 34"),
            ("qubit[5000] r;", "it declares more than 4096 qubits"),
            ("qubit[20000000] r;", "cannot read within 1 GiB of memory"),
            ("bit[2000000000] r;", "cannot read within 1 GiB of memory"),
            ("x q[0]; reset q[0];", "is not a unitary gate"),
        )
    ),
)


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_refused(path: Path, text: str, message: str) -> None:
    path.write_text(HEAD + text)
    with pytest.raises(CircuitError) as error:
        gates_of(load_circuit(path), 3)
    assert message in str(error.value)


@pytest.mark.exhaustive
def test_definitions_that_double(path: Path) -> None:
    doubling = "gate g0 a { h a; }\n" + "".join(
        f"gate g{i + 1} a {{ g{i} a; g{i} a; }}\n" for i in range(50)
    )
    with pytest.raises(CircuitError, match="cannot read within 1 GiB"):
        loaded(path, f"{HEAD}{doubling}g50 q[0];")


def test_which_texts_are_of_version_3() -> None:
    assert form_of(b"/* of\ntwo lines */ OPENQASM 3; // x\n") == "qasm3"
    assert form_of(b"OPENQASM 2.0;") is None
    assert form_of(b"// OPENQASM 3;\nOPENQASM 2.0;") is None
