"""Delays, and resets with which circuits begin, as the examples of OpenQASM 3 do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from qiskit.circuit.library import HGate, RXGate, RZZGate, UGate
from qiskit.quantum_info import Operator
from test_chains import run

from tests.workflow.chained_cases import study_of
from tests.workflow.one_case import error_of
from workflow.circuits.qiskit_circuits import load_circuit
from workflow.circuits.resets import first_resets

TWO = 'OPENQASM 2.0; include "qelib1.inc"; qreg q[3]; creg c[3];\n'
THREE = 'OPENQASM 3.0; include "stdgates.inc"; qubit[3] q; bit[3] c;\n'
BELL = "h q[0]; barrier q; reset q[2]; cx q[0], q[1]; reset q[2];\n"


def case(folder: Path, text: str, **more: Any) -> dict[str, Any]:
    path = folder / "c.qasm"
    path.write_text(text)
    return {"kind": "statevector", "circuit": {"file": str(path)}, **more}


@pytest.mark.parametrize("head", [TWO, THREE])
@pytest.mark.parametrize("noise", [{}, {"noise": {"depolarising": 1e-9}}])
def test_resets_of_zero_do_nothing(tmp_path: Path, head: str, noise: dict[str, Any]) -> None:
    """They were refused, whatever had been done to their qubits."""
    given = case(tmp_path, f"{head}reset q;\n{BELL}", shots=4096, **noise)
    assert first_resets(load_circuit(tmp_path / "c.qasm")) == (0, 1, 2)
    study = study_of({"w": given})
    found = run(study, tmp_path / "run")["w"]
    assert found.coordinates["outcome"].values.tolist() == [0, 3]
    assert int(found.data.sum()) == 4096


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x q[0]; reset q[0];", "instruction 1 (reset on qubits [0]) after others on qubit 0"),
        ("measure q[1] -> c[1]; reset q[1];", "instruction 1 (reset on qubits [1]) after others"),
    ],
)
def test_others_are_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in error_of(case(tmp_path, TWO + text))


@pytest.mark.parametrize(
    "text",
    [
        f"{TWO}opaque delay(t) a; opaque delay_14(t) a; h q[0]; delay(100) q[0]; delay_14(3) q[1]; "
        "reset q[1]; x q[1];",
        f"{THREE}h q[0]; delay[100ns] q[0]; delay[3us] q[1]; reset q[1]; x q[1];",
    ],
)
def test_delays_do_nothing(tmp_path: Path, text: str) -> None:
    case(tmp_path, text)
    found = load_circuit(tmp_path / "c.qasm")
    assert [one.operation.name for one in found.data] == ["h", "x"]
    assert first_resets(found) == (1,)


def test_gates_that_are_defined_behind_an_opaque_delay(tmp_path: Path) -> None:
    """Qiskit's parser takes the one before for each, as in what Qiskit itself writes."""
    text = f"{TWO}opaque delay(t) a; gate f a {{ x a; }} gate g a {{ h a; }} g q[0]; delay(1) q[0];"
    case(tmp_path, text)
    (gate,) = load_circuit(tmp_path / "c.qasm").data
    assert Operator(gate.operation) == Operator(HGate())


@pytest.mark.parametrize("head", [TWO, "OPENQASM 2.0; qreg q[2];"])
def test_gates_that_are_defined_behind_an_opaque_one_of_the_library(
    tmp_path: Path, head: str
) -> None:
    gates = "gate f a { U(1,0,0) a; } gate g a { U(2,0,0) a; }"
    case(tmp_path, f"{head}opaque rzz(t) a, b; {gates} g q[0]; rzz(3) q[0], q[1];")
    one, other = load_circuit(tmp_path / "c.qasm").data
    assert Operator(one.operation) == Operator(UGate(2, 0, 0))
    assert Operator(other.operation) == Operator(RZZGate(3))


def test_a_gate_that_is_called_delay(tmp_path: Path) -> None:
    for name in ("delay", "delay_1"):
        case(tmp_path, f"{TWO}gate {name}(t) a {{ rx(t) a; }} {name}(1) q[0];")
        (gate,) = load_circuit(tmp_path / "c.qasm").data
        assert Operator(gate.operation) == Operator(RXGate(1))


def test_resets_of_another_state_are_refused(tmp_path: Path) -> None:
    given = case(tmp_path, f"{TWO}reset q[2]; h q[0];", initial="random")
    said = "initial: the circuit begins with resets of qubits [2], which are no unitary evolution"
    assert error_of(given).startswith(said)
    assert first_resets(load_circuit(tmp_path / "c.qasm")) == (2,)
