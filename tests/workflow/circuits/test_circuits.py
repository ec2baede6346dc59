"""Circuits: states are Qiskit's, and what is no unitary evolution is refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qiskit import QuantumCircuit
from qiskit.circuit.library import (
    CCZGate,
    CPhaseGate,
    CXGate,
    HGate,
    IGate,
    RXXGate,
    RZGate,
    SwapGate,
)
from qiskit.quantum_info import Statevector

from benchmarks.peers import numpy_matmul
from tests.covers import EXHAUSTIVE
from workflow.circuits import exact_evolution, fused_gates
from workflow.circuits.evolution import evolve, plan_evolution
from workflow.circuits.exact_evolution import evolve_in_fp64
from workflow.circuits.qiskit_circuits import (
    CircuitError,
    check_unitary,
    fuse,
    gates_of,
    load_circuit,
    named_circuit,
)
from workflow.threads import by_threads

NUMPY_PRODUCT = numpy_matmul.PEER.computation("fp64")
HEADER = 'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[3];\ncreg c[3];\n'
# Qiskit and we apply at most 1000 gates of two qubits, each with under 4 roundings of an amplitude,
# or as many operations in fused form: 2 * 1000 * 4 * 2^-53.
FP64 = 2 * 1000 * 4 * 2.0**-53


def state_after(gates, qubits):
    state = np.zeros(2**qubits, complex)
    state[0] = 1
    matrices = np.concatenate([gate.matrix.reshape(-1) for gate in gates])
    targets = [gate.targets for gate in gates]
    by_products = evolve(state, matrices, plan_evolution(qubits, targets), NUMPY_PRODUCT)
    flat = [target for gate in targets for target in gate]
    by_axes = evolve_in_fp64(state, matrices, [len(gate) for gate in targets], flat)
    assert np.abs(by_products - by_axes).max() <= FP64
    return by_products


def circuit_from(tmp_path, text):
    path = tmp_path / "x.qasm"
    path.write_text(HEADER + text)
    return load_circuit(path)


@pytest.mark.parametrize("width", [2, 3, 4, 5])
@pytest.mark.parametrize("name", ["qft", "ghz", "random"])
def test_fused_circuit_is_qiskits(name, width):
    circuit = named_circuit(name, 8, 7, np.random.default_rng(3))
    gates = fuse(circuit, width)
    assert max(len(gate.targets) for gate in gates) <= width
    assert len(gates) < circuit.size()
    exact = Statevector.from_instruction(circuit).data
    assert np.abs(state_after(gates, 8) - exact).max() <= FP64


@pytest.mark.parametrize("width", [1, 3, 6])
@pytest.mark.parametrize("block", [2, 5, 7, 8, 9])
def test_the_reference_is_the_same_in_blocks(block, width, monkeypatch):
    rng = np.random.default_rng([block, width])
    targets = [rng.permutation(8)[: rng.integers(1, width + 1)] for _ in range(12)]
    widths, flat = [len(gate) for gate in targets], np.concatenate(targets)
    matrices = np.concatenate([rng.normal(size=4**n) + 1j * rng.normal(size=4**n) for n in widths])
    state = rng.normal(size=256) + 1j * rng.normal(size=256)
    before = state.copy()
    whole = evolve_in_fp64(state, matrices, widths, flat)
    monkeypatch.setattr(exact_evolution, "BLOCK_QUBITS", block)
    found = evolve_in_fp64(state, matrices, widths, flat)
    by_products = evolve(state, matrices, plan_evolution(8, targets), NUMPY_PRODUCT)
    # 12 gates of at most 64 terms each are fewer roundings than those that FP64 allows for.
    allowed = FP64 * np.linalg.norm(whole)
    assert np.linalg.norm(found - whole) <= allowed
    assert np.linalg.norm(by_products - whole) <= allowed
    assert np.array_equal(state, before)


@pytest.mark.parametrize("block", [1, 2, 4, 6] if EXHAUSTIVE else [1, 6])
def test_factors_and_permutations_reach_beyond_a_block(block, monkeypatch):
    rng = np.random.default_rng(block)
    circuit = QuantumCircuit(8)
    for number in range(32):
        one, other, third = map(int, rng.permutation(8)[:3])
        angle = float(rng.uniform(0, 6))
        gate, qubits = [
            (CPhaseGate(angle), [one, other]), (RZGate(angle), [one]),
            (CCZGate(), [one, other, third]), (HGate(), [one]), (SwapGate(), [one, other]),
            (CXGate(), [one, other]), (IGate(), [one]), (RXXGate(angle), [one, other]),
        ][number % 8]  # fmt: skip
        circuit.append(gate, qubits)
    gates = gates_of(circuit, 3)
    operands = fused_gates.as_operands(gates)
    state = rng.normal(size=256) + 1j * rng.normal(size=256)
    names = ("matrices", "widths", "targets")
    monkeypatch.setattr(exact_evolution, "BLOCK_QUBITS", block)
    with by_threads(3):
        found = evolve_in_fp64(state, *(operands[name] for name in names))
    exact = Statevector(state).evolve(circuit).data
    assert np.abs(found - exact).max() <= FP64 * np.abs(state).max()
    with by_threads(1):
        alone = evolve_in_fp64(state, *(operands[name] for name in names))
    assert np.array_equal(found, alone)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 7), st.integers(1, 6), st.integers(2, 5), st.integers(0, 2**31))
def test_fusion_keeps_unitarity_order_and_state(qubits, depth, width, seed):
    circuit = named_circuit("random", qubits, depth, np.random.default_rng(seed))
    gates = fuse(circuit, width)
    for gate in gates:
        order = 2 ** len(gate.targets)
        assert list(gate.targets) == sorted(set(gate.targets))
        assert np.abs(gate.matrix @ gate.matrix.conj().T - np.eye(order)).max() <= FP64
    exact = Statevector.from_instruction(circuit).data
    assert np.abs(state_after(gates, qubits) - exact).max() <= FP64


def test_named_circuits_are_what_they_say():
    ghz = state_after(fuse(named_circuit("ghz", 5, 1, np.random.default_rng()), 2), 5)
    assert np.abs(ghz[[0, -1]] - 2**-0.5).max() <= FP64
    circuit = QuantumCircuit(5)
    circuit.x([0, 3])
    circuit.compose(named_circuit("qft", 5, 1, np.random.default_rng()), inplace=True)
    found = state_after(fuse(circuit, 4), 5)
    exact = np.exp(2j * np.pi * 9 * np.arange(32) / 32) / 32**0.5
    assert np.abs(found - exact).max() <= FP64


def test_gates_commute_past_others_into_one_block():
    circuit = QuantumCircuit(4)
    circuit.cx(0, 1)
    circuit.cx(2, 3)
    circuit.h(0)
    circuit.h(3)
    assert [gate.targets for gate in fuse(circuit, 2)] == [(0, 1), (2, 3)]


def test_wide_gates_are_taken_apart():
    circuit = QuantumCircuit(5)
    circuit.h(range(5))
    circuit.mcx([4, 2, 0], 1)
    circuit.ccx(0, 3, 2)
    gates = fuse(circuit, 2)
    exact = Statevector.from_instruction(circuit).data
    assert np.abs(state_after(gates, 5) - exact).max() <= FP64
    with pytest.raises(CircuitError, match=r"fuse must be at least \d for gate \w+ on qubits .*"):
        fuse(circuit, 1)


def test_global_phase_is_kept(tmp_path):
    circuit = QuantumCircuit(2, global_phase=0.3)
    circuit.h(1)
    assert np.abs(state_after(fuse(circuit, 2), 2) - Statevector(circuit).data).max() <= FP64


def test_legacy_instructions_own_gates_and_final_measurements(tmp_path):
    own = "gate pair a,b { h a; u0(7) b; cx a,b; } // not {\n"
    circuit = circuit_from(tmp_path, own + "pair q[0],q[2];\nbarrier q;\nmeasure q -> c;\n")
    gates = fuse(circuit, 3)
    assert np.abs(np.abs(state_after(gates, 3)[[0, 5]]) ** 2 - 0.5).max() <= FP64


@pytest.mark.parametrize("name", ["rxx", "p", "sx", "csx"])
def test_a_gate_that_the_file_defines_is_not_the_librarys(tmp_path, name):
    """Whether the library is included, or Qiskit knows the name anyway, as of csx."""
    text = f"gate {name}(t) a, b {{ rx(t) a; ry(2*t) b; }} {name}(0.3) q[1], q[0];"
    expected = QuantumCircuit(3)
    expected.rx(0.3, 1)
    expected.ry(0.6, 0)
    found = circuit_from(tmp_path, text)
    np.testing.assert_allclose(Statevector(found).data, Statevector(expected).data, atol=1e-15)


def test_measurement_of_a_later_control_can_wait(tmp_path):
    circuit = circuit_from(tmp_path, "h q[0];\nmeasure q[0] -> c[0];\ncx q[0],q[1];\n")
    assert np.abs(state_after(fuse(circuit, 2), 3)[[0, 3]] - 2**-0.5).max() <= FP64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("measure q[0] -> c[0];\nh q[0];\n", r"instruction 1 \(h on qubits \[0\]\).*mid-circuit"),
        ("measure q[0] -> c[0];\ncx q[1],q[0];\n", "changes qubit 0 after its measurement"),
        ("x q[1];\nreset q[1];\n", r"instruction 1 \(reset on qubits \[1\]\) after others"),
        ("if(c==1) x q[0];\n", "is classical control.*where a measured bit decides, its qubit may"),
    ],
)
def test_what_is_not_an_evolution_is_refused_by_name(tmp_path, text, message):
    with pytest.raises(CircuitError, match=message):
        check_unitary(circuit_from(tmp_path, text))


def test_opaque_gates_and_bad_files_are_refused(tmp_path):
    circuit = circuit_from(tmp_path, "opaque magic a;\nmagic q[0];\n")
    with pytest.raises(CircuitError, match="gate magic has no matrix"):
        fuse(circuit, 2)
    with pytest.raises(CircuitError, match="is not OpenQASM 2"):
        circuit_from(tmp_path, "h q[7];\n")
    with pytest.raises(CircuitError, match="there is no file"):
        load_circuit(Path("nowhere.qasm"))


@pytest.mark.parametrize("targets", [[[0, 0]], [[3]], [[-1]]])
def test_plan_refuses_wrong_targets(targets):
    with pytest.raises(ValueError, match="targets must be different qubits below 3"):
        plan_evolution(3, targets)


@pytest.mark.parametrize(
    "targets", [[0], [7], [3, 4], [6, 7], [0, 1, 2], [4, 3], [0, 7], [7, 0, 3], [2, 5, 1, 6]]
)
def test_one_gate_on_any_targets(targets):
    rng = np.random.default_rng(5)
    order = 2 ** len(targets)
    matrix = rng.normal(size=(order, order)) + 1j * rng.normal(size=(order, order))
    state = rng.normal(size=256) + 1j * rng.normal(size=256)
    evolution = plan_evolution(8, [targets, targets])
    found = evolve(state, np.tile(matrix.reshape(-1), 2), evolution, NUMPY_PRODUCT)
    exact = np.zeros(256, complex)
    square = matrix @ matrix
    for number in range(256):
        column = sum(((number >> target) & 1) << bit for bit, target in enumerate(targets))
        rest = number & ~sum(1 << target for target in targets)
        for row in range(order):
            moved = rest | sum(((row >> bit) & 1) << t for bit, t in enumerate(targets))
            exact[moved] += square[row, column] * state[number]
    assert np.abs(found - exact).max() <= 1e-12 * np.abs(exact).max() * order
