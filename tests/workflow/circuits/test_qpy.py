"""Circuits in Qiskit's QPY: the state of the circuit, or an error that says what is wrong."""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from qiskit import QuantumCircuit, qpy
from qiskit.circuit import Instruction, Parameter
from qiskit.circuit.library import (
    DiagonalGate,
    GlobalPhaseGate,
    Isometry,
    PauliGate,
    PauliProductRotationGate,
    UCGate,
    UnitaryGate,
)
from qiskit.quantum_info import Operator, Pauli, random_clifford
from scipy.stats import unitary_group

from workflow.circuits import qiskit_reader, qiskit_text
from workflow.circuits.qiskit_circuits import CircuitError, load_circuit


@pytest.fixture(scope="module", autouse=True)
def circuits_without_a_process() -> None:
    """Each is read by a process within limits, as a user's is."""


def circuit() -> QuantumCircuit:
    """Gates of the library, of a matrix, and of a definition of its own; a phase; a measurement."""
    found = QuantumCircuit(3, 1)
    found.rx(0.1234567890123456, 0)
    found.rzz(-0.3, 0, 2)
    found.append(UnitaryGate(unitary_group.rvs(4, random_state=1)), [2, 1])
    own = QuantumCircuit(1, name="my gate")
    own.h(0)
    own.t(0)
    found.append(own.to_gate().control(1), [1, 0])
    other = QuantumCircuit(2, name="swap")  # no more than in name
    other.cx(0, 1)
    found.append(other.to_gate(), [0, 2])
    found.global_phase = 0.4
    return found


def written(*programs: QuantumCircuit) -> bytes:
    file = io.BytesIO()
    qpy.dump(list(programs), file)
    return file.getvalue()


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(CircuitError) as error:
        load_circuit(path)
    assert str(error.value).startswith(f"circuit.file: {path}")
    return str(error.value)


def test_the_circuit_that_was_written(tmp_path: Path) -> None:
    expected, path = circuit(), tmp_path / "one.qpy"
    measured = expected.copy()
    measured.measure(1, 0)
    path.write_bytes(written(measured))
    found = load_circuit(path)
    assert found.count_ops()["measure"] == 1
    a, b = (Operator(c.remove_final_measurements(inplace=False)).data for c in (found, expected))
    assert abs(abs(np.vdot(a, b)) - len(a)) < 1e-12  # up to the phase
    assert np.abs(a - b).max() > 0.1


def test_angles_next_to_fractions_of_pi(tmp_path: Path) -> None:
    """Qiskit writes pi/4 for the first of them, 0 for the second, 1/pi for the third."""
    path, angles = tmp_path / "one.qpy", [np.pi / 4 + 5e-13, 7e-13, 1 / np.pi - 3e-13, -1e-300]
    found = QuantumCircuit(1)
    for angle in angles:
        found.rx(angle, 0)
    path.write_bytes(written(found))
    assert [one.operation.params[0] for one in load_circuit(path).data] == angles


def without_a_call() -> QuantumCircuit:
    """OpenQASM 2 cannot call gates of matrices and strings, annotations, or words as names."""
    found = QuantumCircuit(3, global_phase=0.2)
    matrix = UnitaryGate(unitary_group.rvs(2, random_state=2))
    found.append(matrix.control(2, ctrl_state=1), [2, 0, 1])
    inner = QuantumCircuit(2, name="barrier", global_phase=0.7)
    inner.h(0)
    inner.append(matrix.control(), [0, 1])
    inner.append(PauliGate("XY"), [1, 0])
    found.append(inner.to_gate(), [2, 0])
    found.append(inner.to_gate().control(annotated=True), [1, 2, 0])
    found.append(inner.to_gate().inverse(annotated=True).control(), [0, 1, 2])
    found.append(DiagonalGate(list(np.exp(1j * np.arange(4)))), [0, 2])
    found.append(GlobalPhaseGate(0.3), [])
    for name in ("pi", "measure", "reset", "qubits_0"):
        own = QuantumCircuit(1, name=name)
        own.ry(len(name), 0)
        found.append(own.to_gate(), [1])
    return found


def called_like_the_library() -> QuantumCircuit:
    """Gates that are Qiskit's in name alone, under controls and within others, and such as are."""
    found = QuantumCircuit(3)
    for qubit in range(3):
        found.u(0.3 + qubit, 0.2, 0.1, qubit)
    own = {"swap": QuantumCircuit(2, name="swap"), "x": QuantumCircuit(1, name="x")}
    own["ry"] = QuantumCircuit(1, name="ry")
    for number, one in enumerate(own.values()):
        one.rx(0.4 + number, 0)
    own["swap"].cx(0, 1)
    outer = QuantumCircuit(2, name="outer")
    outer.append(own["x"].to_gate(), [1])
    outer.append(own["swap"].to_gate(), [1, 0])
    found.append(own["swap"].to_gate().control(ctrl_state=0), [0, 1, 2])
    found.append(own["x"].to_gate().control(annotated=True), [2, 0])
    found.append(own["ry"].to_gate().control(2, 1, annotated=True), [2, 0, 1])
    found.append(outer.to_gate().control(ctrl_state=0, annotated=True), [1, 2, 0])
    found.append(outer.to_gate().control(annotated=True).inverse(annotated=True), [0, 1, 2])
    found.append(random_clifford(2, seed=3), [1, 2])
    found.append(PauliProductRotationGate(Pauli("XYZ"), 0.7), [2, 0, 1])  # any of this name, to it
    return found


@pytest.mark.parametrize("make", [without_a_call, called_like_the_library])
def test_what_version_2_cannot_call(tmp_path: Path, make: Callable[[], QuantumCircuit]) -> None:
    path, expected = tmp_path / "one.qpy", make()
    path.write_bytes(written(expected))
    a, b = (Operator(one).data for one in (load_circuit(path), expected))
    assert abs(abs(np.vdot(a, b)) - len(a)) < 1e-9


def test_a_state_that_is_set_says_what_to_write(tmp_path: Path) -> None:
    found = QuantumCircuit(2)
    found.initialize([0.6, 0.8], 1)
    said = refused(tmp_path / "set.qpy", written(found))
    assert "initialize has a reset, which is not unitary; prepare_state has none" in said


def test_formats_that_may_hold_code_are_not_given_to_qiskit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(qiskit_text.subprocess, "run", run)
    content = written(circuit())
    for version in (1, 10, 12):
        old = qiskit_text.MAGIC + bytes([version]) + content[7:]
        said = refused(tmp_path / "old.qpy", old)
        assert f"it is QPY of version {version}; version 13 (Qiskit 1.3) or newer is read" in said
    assert "it is QPY of version 0" in refused(tmp_path / "short.qpy", qiskit_text.MAGIC)


def unbound() -> bytes:
    found = QuantumCircuit(1)
    found.rx(Parameter("a"), 0)
    return written(found)


def controlled() -> bytes:
    found = QuantumCircuit(1, 1)
    with found.if_test((0, True)):
        found.x(0)
    return written(found)


def many_qubits() -> bytes:
    """A header that says 2^31 qubits, of which no register is."""
    content, one = written(QuantumCircuit(3, 5)), struct.pack("!II", 3, 5)
    assert content.count(one) == 1
    return content.replace(one, struct.pack("!II", 1 << 31, 5))


def not_read_back(gate: Instruction) -> bytes:
    """A gate that Qiskit 2 writes without some of its arguments."""
    found = QuantumCircuit(2)
    found.append(gate, [0, 1])
    return written(found)


def infinite() -> bytes:
    found = QuantumCircuit(1)
    found.rx(np.inf, 0)
    return written(found)


WRONG = [
    pytest.param(infinite, "must be a finite number, got inf", id="infinite"),
    pytest.param(lambda: not_read_back(Isometry(np.eye(4)[:, :2], 0, 0)),
                 "decompose() takes such a gate apart", id="isometry"),
    pytest.param(lambda: not_read_back(UCGate([np.eye(2), np.diag([1, 1j])])),
                 "decompose() takes such a gate apart", id="multiplexed"),
    pytest.param(unbound, "parameters without a value", id="unbound"),
    pytest.param(many_qubits, "it is QPY that", id="qubits", marks=pytest.mark.exhaustive),
    pytest.param(lambda: written(circuit(), circuit()), "must hold one circuit", id="two",
                 marks=pytest.mark.exhaustive),
    pytest.param(controlled, "it is QPY that cannot be read as a circuit", id="control",
                 marks=pytest.mark.exhaustive),
    pytest.param(lambda: written(circuit())[:-40], "it is QPY that", id="cut",
                 marks=pytest.mark.exhaustive),
    pytest.param(lambda: written(QuantumCircuit(40)), "has 40 qubits", id="forty",
                 marks=pytest.mark.exhaustive),
]  # fmt: skip


@pytest.mark.parametrize(("make", "said"), WRONG)
def test_what_is_refused(tmp_path: Path, make: Callable[[], bytes], said: str) -> None:
    assert said in refused(tmp_path / "wrong.qpy", make())


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(8))
def test_flipped_bytes_are_a_circuit_or_an_error(tmp_path: Path, seed: int) -> None:
    rng, content = np.random.default_rng(seed), bytearray(written(circuit()))
    for place in rng.integers(7, len(content), 3):
        content[place] = int(rng.integers(256))
    path = tmp_path / "flipped.qpy"
    path.write_bytes(content)
    with contextlib.suppress(CircuitError):
        assert load_circuit(path).num_qubits > 0


@pytest.mark.exhaustive
def test_a_gate_of_the_library_that_takes_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process ends by its limit of time, not ours."""
    slow = tmp_path / "slow.py"
    slow.write_text(Path(qiskit_reader.__file__).read_text().replace(
        f"CPU_SECONDS = {qiskit_reader.CPU_SECONDS}", "CPU_SECONDS = 1"
    ).replace("circuit = _from_qpy", "while True: pass\n    circuit = _from_qpy"))  # fmt: skip
    monkeypatch.setattr(qiskit_reader, "__file__", str(slow))
    assert "cannot read within" in refused(tmp_path / "slow.qpy", written(circuit()))
