"""Registers of circuits in products, and states that are none."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from input_files import put
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister, qpy
from qiskit.circuit import Clbit, Qubit
from test_chains import run

from tests.workflow.chained_cases import study_of
from workflow.circuits import qiskit_circuits
from workflow.circuits.registers import MAX_OUTCOMES, classical_bits, named_qubits, registers_of
from workflow.data import Product
from workflow.files.input_error import InputError
from workflow.workloads.state_readout import _norm

HEAD = 'OPENQASM 2.0;\ninclude "qelib1.inc";\n'
TWO = HEAD + (
    "qreg data[2]; qreg anc[1]; creg out[2]; creg a[1]; x data[0]; h anc[0];\n"
    "measure data[0] -> out[1]; measure data[1] -> out[0]; measure anc[0] -> a[0];\n"
)


def products_of(folder: Path, text: str, **case: Any) -> Product:
    (folder / "c.qasm").write_text(text)
    circuit = {"kind": "statevector", "circuit": {"file": str(folder / "c.qasm")}, **case}
    study = study_of({"s": circuit})
    return run(study, Path(tempfile.mkdtemp(dir=folder)))["s"]


@pytest.mark.parametrize("noise", [{}, {"noise": {"depolarising": 1e-9}}])
def test_counts_have_the_classical_bits_of_qiskits(tmp_path: Path, noise: Any) -> None:
    """A product keeps the classical bit that each qubit is measured into, and its register."""
    found = products_of(tmp_path, TWO, shots=4096, **noise)
    outcome, bits = found.coordinates["outcome"], found.coordinates["classical_bits"]
    assert outcome.values.tolist() == [1, 5]
    said = "basis state, qubit 0 least significant: data 0 to 1, anc 2"
    assert outcome.long_name == said
    assert bits.values.tolist() == ["0 10", "1 10"]
    assert bits.axes == ("outcome",)
    assert bits.long_name == "classical bits a out, the highest first"


def test_a_picture_has_the_classical_bits_of_outcomes(tmp_path: Path) -> None:
    """It had numbers of basis states alone, which nobody measures."""
    from matplotlib.figure import Figure

    for text, names, label in (
        (TWO, ["|1⟩  0 10", "|5⟩  1 10"], "outcome, and classical bits a out, the highest first"),
        (HEAD + "qreg q[2]; x q[1];", ["|2⟩"], "outcome"),
    ):
        (tmp_path / "c.qasm").write_text(text)
        one = {"kind": "statevector", "circuit": {"file": str(tmp_path / "c.qasm")}, "shots": 4096}
        study, axes = study_of({"s": one}), Figure().subplots()
        product = run(study, Path(tempfile.mkdtemp(dir=tmp_path)))["s"]
        study.workload("s").picture(product, axes)
        assert [one.get_text() for one in axes.get_xticklabels()] == names
        assert axes.get_xlabel() == label


VERSION_3 = (
    'OPENQASM 3.0; include "stdgates.inc"; qubit[2] data; qubit[1] anc; bit[2] out; bit[1] a;\n'
    "x data[0]; h anc[0]; out[1] = measure data[0]; out[0] = measure data[1];\n"
    "a[0] = measure anc[0];\n"
)


def written(circuit: QuantumCircuit) -> bytes:
    content = io.BytesIO()
    qpy.dump(circuit, content)
    return content.getvalue()


def as_qpy(data: str = "data", out: str = "out", shared: bool = False) -> bytes:
    """The circuit of `TWO`, with registers of these names; one more has a qubit of the first."""
    qubits, ancilla = QuantumRegister(2, data), QuantumRegister(1, "anc")
    circuit = QuantumCircuit(qubits, ancilla, ClassicalRegister(2, out), ClassicalRegister(1, "a"))
    if shared:
        circuit.add_register(QuantumRegister(bits=[qubits[0]], name="again"))
    circuit.x(0)
    circuit.h(2)
    circuit.measure([0, 1, 2], [1, 0, 2])
    return written(circuit)


def without_registers(*registers: ClassicalRegister) -> bytes:
    """The circuit of `TWO` of qubits, and bits, that are in no register."""
    circuit = QuantumCircuit(*registers, [Qubit() for _ in range(3)])
    circuit.add_bits([Clbit() for _ in range(3 - circuit.num_clbits)])
    circuit.x(0)
    circuit.h(2)
    circuit.measure([0, 1, 2], [1, 0, 2])
    return written(circuit)


SINGLE = re.sub(r"\b(qubit|bit|a|anc)\[[01]\]", r"\1", VERSION_3)
APART = ["0 10", "1 10"]


@pytest.mark.parametrize(
    ("content", "qubits", "names", "bits"),
    [
        (VERSION_3.encode(), ": data 0 to 1, anc 2", " a out", APART),
        (SINGLE.encode(), ": data 0 to 1, anc 2", " a out", APART),
        (f"{VERSION_3}let all = data ++ anc;".encode(), ": data 0 to 1, anc 2", " a out", APART),
        (VERSION_3.replace("out", "OUT").encode(), ": data 0 to 1, anc 2", " a OUT", APART),
        (as_qpy(), ": data 0 to 1, anc 2", " a out", APART),
        (as_qpy("Data é", "h"), ": Data é 0 to 1, anc 2", " a h", APART),
        (as_qpy("x" * 99, "bits_1"), f": {'x' * 64} 0 to 1, anc 2", " a bits_1", APART),
        (as_qpy("<b>\x1b[31m\n"), ": <b>_[31m_ 0 to 1, anc 2", " a out", APART),
        (as_qpy(shared=True), ": data 0 to 1, anc 2", " a out", APART),
        (without_registers(), "", "", ["010", "110"]),
        (without_registers(ClassicalRegister(2, "out")), "", " (without a name) out", APART),
    ],
)
def test_registers_of_other_forms_are_kept(
    tmp_path: Path, content: bytes, qubits: str, names: str, bits: list[str]
) -> None:
    """They became one register of qubits and one of bits, so that counts had other texts."""
    path = tmp_path / "c.any"
    path.write_bytes(content)
    circuit = {"kind": "statevector", "circuit": {"file": str(path)}, "shots": 4096}
    study = study_of({"s": circuit})
    found = run(study, tmp_path)["s"].coordinates
    assert found["outcome"].long_name == f"basis state, qubit 0 least significant{qubits}"
    assert found["classical_bits"].values.tolist() == bits
    assert found["classical_bits"].long_name == f"classical bits{names}, the highest first"


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([[1, 0]], None),
        ([[0], [1, 0]], None),
        ([[1], [0]], [["r1", 1], ["r0", 1]]),
        ([[0], [], [1]], [["r0", 1], ["r2", 1]]),
    ],
)
def test_registers_follow_the_qubits_or_are_left_out(
    tmp_path: Path, places: list[list[int]], expected: list[Any] | None
) -> None:
    qubits = [Qubit(), Qubit()]
    circuit = QuantumCircuit(qubits)
    for number, own in enumerate(places):
        bits = [qubits[place] for place in own]
        circuit.add_register(QuantumRegister(bits=bits, name=f"r{number}"))
    circuit.x(0)
    path = tmp_path / "c.qpy"
    path.write_bytes(written(circuit))
    study = study_of({"s": {"kind": "statevector", "circuit": {"file": str(path)}}})
    assert study.workload("s").stage().attributes.get("registers") == expected
    np.testing.assert_array_equal(np.abs(run(study, tmp_path)["s"].data), [0, 1, 0, 0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qreg q[3]; creg c[3]; x q[1]; measure q -> c;", ["010"]),
        ("qreg q[3]; creg c[2]; x q[1]; measure q[1] -> c[1];", ["10"]),
        ("qreg q[3]; creg c[1]; x q[1]; measure q[0] -> c[0]; measure q[1] -> c[0];", ["1"]),
        ("qreg q[3]; creg c[1]; x q[1];", None), ("qreg q[3]; x q[1];", None),
    ],
)  # fmt: skip
def test_what_is_measured(tmp_path: Path, text: str, expected: list[str] | None) -> None:
    found = products_of(tmp_path, HEAD + text, shots=5)
    assert found.coordinates["outcome"].values.tolist() == [2]
    assert found.coordinates["outcome"].long_name == "basis state, qubit 0 least significant"
    bits = found.coordinates.get("classical_bits")
    assert (None if bits is None else bits.values.tolist()) == expected


def test_registers_are_named_in_every_answer(tmp_path: Path) -> None:
    end = ": data 0 to 1, anc 2"
    for case, name in (
        ({"observables": ["ZII"]}, "observable"), ({"probabilities": [2]}, "outcome"),
        ({}, "basis_state"),
    ):  # fmt: skip
        found = products_of(tmp_path, TWO, **case).coordinates[name].long_name
        assert found.endswith(end)


def test_the_bits_are_those_that_qiskit_measures(tmp_path: Path) -> None:
    """In any order, into two registers."""
    rng = np.random.default_rng(4)
    qubits, bits = rng.permutation(5), rng.permutation(5)
    lines = [f"measure q[{q}] -> c{b // 3}[{b % 3}];" for q, b in zip(qubits, bits, strict=True)]
    (tmp_path / "c.qasm").write_text(f"{HEAD}qreg q[5]; creg c0[3]; creg c1[2]; " + " ".join(lines))
    registers = registers_of(qiskit_circuits.load_circuit(tmp_path / "c.qasm"))
    found = classical_bits(registers, np.arange(32))
    assert found is not None
    for outcome, text in enumerate(found.values):
        plain = text.replace(" ", "")[::-1]  # bit 0 first
        for qubit, bit in zip(qubits, bits, strict=True):
            assert int(plain[bit]) == (outcome >> qubit) & 1
        assert text[2] == " "
    assert named_qubits(registers) == ""
    assert classical_bits(registers, np.zeros(MAX_OUTCOMES + 1, np.int64)) is None


def test_a_state_that_is_none_has_no_readout(tmp_path: Path) -> None:
    """An input of norm 2 would have probabilities that add up to 4."""
    state = np.zeros(8, np.complex64)
    state[[1, 5]] = 2**-0.5
    put(tmp_path / "s.h5", right=state.real.astype(np.float16), wrong=2 * state)
    for case in ({"shots": 9}, {"observables": ["IIZ"]}, {"probabilities": [0]}):
        given = {"file": str(tmp_path / "s.h5"), "state": {"real": "right"}}
        products_of(tmp_path, TWO, input=given, **case)
        given["state"] = "wrong"
        said = r"input\.state must have the norm 1 of a state, of which .* are asked, got 2; divide"
        with pytest.raises(InputError, match=said):
            products_of(tmp_path, TWO, input=given, **case)
    assert products_of(tmp_path, TWO, input=given).data.shape == (8,)  # of a linear map alone


def test_the_norm_of_a_state_has_its_small_amplitudes() -> None:
    """Their squares are lost beside 1 in fp32, as those of many qubits are beside their sum."""
    state = np.full(1 << 20, 2.0**-13, np.complex64)
    state[0] = 1
    expected = np.sqrt(1 + (state.size - 1) * 2.0**-26)
    pieces = iter([state[:300_000], state[300_000:]])
    assert _norm(pieces) == pytest.approx(expected, rel=1e-12)
