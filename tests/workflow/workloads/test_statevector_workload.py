"""State vectors as a workload: circuits, fusion, plans, initial states, files and mistakes."""

import numpy as np
import pytest
from argand import PRECISIONS, plan_circuit
from argand.device import cpu
from input_files import put
from pydantic import ValidationError

from tests.workflow.workloads.on_cpu import result_of
from workflow.accuracy.gate_bounds import evolution_bound
from workflow.circuits.fused_gates import gates_in
from workflow.circuits.qiskit_circuits import CircuitError
from workflow.data import power
from workflow.files.input_error import InputError
from workflow.passes import Applied, described, in_words, passes_in
from workflow.workloads.statevector import Statevector, StatevectorCase

OUTCOMES = {
    "adder_n10": {514: 1.0},
    "gcm_n13": {910: 0.25, 911: 0.25},
    "ising_n10": {978: 0.042114},
    "qf21_n15": {22527: 0.062697},
    "qft_n18": dict.fromkeys((0, 1, 77_777, 2**18 - 1), 2.0**-18),
    "seca_n11": {1024: 0.25},
}
KNOWN_TO_SIX_DECIMALS = ("ising_n10", "qf21_n15")


def statevector(circuit, **parameters):
    case = {"kind": "statevector", "circuit": circuit, **parameters}
    return Statevector("s", StatevectorCase.model_validate(case), 5)


@pytest.mark.each_value
@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("precision", ["fp64", "fp32", "3xtf32"])
def test_published_circuits_have_their_known_outcomes(real_data, name, precision):
    one = statevector({"file": real_data / "qasm" / f"{name}.qasm"})
    one.check()
    assert_known(one, one.stage(), name, precision)


def assert_known(one, staged, name, precision):
    ours = one.argand(staged, PRECISIONS[precision], cpu())
    found = ours.compute(ours.prepare(staged.operands))
    applied = one.as_computed(staged, ours.plan_words)
    accuracy = one.assess(applied, one.reference(staged), found, PRECISIONS[precision], "cpu")
    assert accuracy.verified, accuracy.reason
    probability = power(found.astype(complex))
    # Fusing costs each of the file's gates under 8 roundings of fp64 in norm; then comes the error
    # at the precision, and | |a|^2 - |b|^2 | <= (|a| + |b|) |a - b|.
    error = accuracy.rel_frobenius + staged.attributes["gates_before_fusion"] * 8 * 2.0**-53
    known_to = 5e-7 if name in KNOWN_TO_SIX_DECIMALS else 0
    for number, known in OUTCOMES[name].items():
        assert abs(probability[number] - known) <= known_to + error * (2 * known**0.5 + error)
    if name == "qft_n18":
        assert np.abs(probability - 2.0**-18).max() <= error * (2 * 2.0**-9 + error)
    assert abs(probability.sum() - 1) <= error * (2 + error)


@pytest.mark.parametrize("fuse", [1, 2, 3, 6])
def test_fusion_changes_gates_and_not_the_state(fuse):
    circuit = {"name": "random", "qubits": 1 if fuse == 1 else 6, "depth": 5, "seed": 1}
    one = statevector(circuit, fuse=fuse)
    staged = one.stage()
    unfused = statevector(circuit, fuse=min(fuse, 2)).stage()
    assert staged.operands["widths"].max() <= fuse
    assert len(staged.operands["widths"]) <= len(unfused.operands["widths"])
    assert staged.attributes["gates_before_fusion"] >= len(unfused.operands["widths"])
    a, b = (one.reference(given).values for given in (staged, unfused))
    assert np.linalg.norm(a - b) <= 1e-13


@pytest.mark.parametrize("circuit", [
    {"name": "qft", "qubits": 9}, {"name": "random", "qubits": 8, "depth": 9, "seed": 2},
    {"name": "ghz", "qubits": 1},
])  # fmt: skip
def test_the_planner_fuses_for_the_implementation_that_applies_the_gates(circuit):
    auto, fixed = statevector(circuit), statevector(circuit, fuse=3)
    staged, plain = auto.stage(), fixed.stage()
    assert len(staged.operands["widths"]) == auto.circuit().size()
    expected = fixed.reference(plain)
    assert np.linalg.norm(auto.reference(staged).values - expected.values) <= 1e-13
    assert auto.as_computed(staged, "") is staged
    row = PRECISIONS["fp64"]
    for one in (auto.argand(staged, row, cpu()), *auto.baselines(staged, cpu())):
        passes = [found.width for found in passes_in(one.plan_words)]
        assert in_words(one.plan_words) in one.algorithm
        found = one.compute(one.prepare(staged.operands))
        applied = auto.as_computed(staged, one.plan_words)
        accuracy = auto.assess(applied, expected, found, one.precision, "cpu")
        assert accuracy.verified, accuracy.reason
        shape = auto.shape(applied, row)
        assert shape.flops == auto.shape(staged, row).flops
        amplitudes = 2 * len(passes) * 2 ** circuit["qubits"] + sum(4**width for width in passes)
        assert shape.bytes_moved == 16 * amplitudes
        # A bound that counts gates where passes were applied is another one.
        widths = staged.operands["widths"].tolist()
        assert accuracy.worst_bound == evolution_bound(one.precision, passes, "cpu", widths)


def test_the_record_of_a_plan_says_what_was_planned():
    one = statevector({"name": "qft", "qubits": 9})
    staged = one.stage()
    ours = one.argand(staged, PRECISIONS["fp32"], cpu())
    gates = [(gate.matrix, gate.targets) for gate in gates_in(staged.operands)]
    plan = plan_circuit(9, gates, precision="fp32")
    found = passes_in(ours.plan_words)
    assert [one.width for one in found] == sorted(len(one.qubits) for one in plan.passes)
    assert ours.predicted_us == pytest.approx(1e6 * plan.predicted_seconds)
    assert in_words("1x3 2x7") == "3 passes of up to 7 qubits"
    assert in_words("1x3") == "1 pass of up to 3 qubits"


def test_passes_are_written_with_their_entries_and_repeats_and_read_again():
    swap, mixed = np.eye(4)[[0, 2, 1, 3]], np.ones((8, 8))
    text = described([mixed, swap, swap, 1j * swap, np.eye(2)], [3, 2, 2, 2, 1])
    assert text == "1x1n1r1 1x2n1r1 2x2n1r2 1x3n8r1"
    assert passes_in(text) == [
        Applied(1, 1, 1), Applied(2, 1, 1), Applied(2, 1, 2), Applied(2, 1, 2), Applied(3, 8, 1)
    ]  # fmt: skip
    assert passes_in("6x2n1r3") == 6 * [Applied(2, 1, 3)]
    assert described([], []) == ""
    assert passes_in("") == []
    # Written before entries and matrices were: the worst that it can be.
    assert passes_in("2x3") == 2 * [Applied(3, 8, 2)]
    with pytest.raises(ValueError, match="passes must be like 12x4n2r3, got '3y2'"):
        passes_in("1x1 3y2")


def test_operands_are_flat_and_fit_together():
    staged = statevector({"name": "qft", "qubits": 7}, fuse=3).stage()
    widths = staged.operands["widths"]
    assert staged.operands["state"].shape == (128,)
    assert staged.operands["state"].dtype == staged.operands["matrices"].dtype == np.complex128
    assert staged.operands["matrices"].size == (4**widths).sum()
    assert staged.operands["targets"].size == widths.sum()
    one = statevector({"name": "qft", "qubits": 7}, fuse=3)
    shape = one.shape(staged, PRECISIONS["fp32"])
    assert shape.flops == 8 * 128 * (2**widths).sum()
    assert shape.bytes_moved == 8 * (2 * 128 * len(widths) + (4**widths).sum())


def test_initial_state_of_a_file(tmp_path):
    state = np.zeros(16, np.complex64)
    state[9] = 1j
    put(tmp_path / "s.h5", psi=state, short=state[:8], unwritten=0 * state)
    source = {"file": tmp_path / "s.h5", "state": "psi"}
    one = statevector({"name": "qft", "qubits": 4}, input=source)
    one.check()
    staged = one.stage()
    exact = 1j * np.exp(2j * np.pi * 9 * np.arange(16) / 16) / 4
    assert np.abs(result_of(one, staged, "fp64") - exact).max() <= 1e-14
    assert staged.attributes["source"] == str(tmp_path / "s.h5")
    with pytest.raises(InputError, match=r"input\.state must have 16 amplitudes .* got 8"):
        statevector(
            {"name": "qft", "qubits": 4}, input={"file": tmp_path / "s.h5", "state": "short"}
        ).check()
    with pytest.raises(InputError, match=r"^input\.state: all of its values are zero"):
        statevector({"name": "qft", "qubits": 4}, input={**source, "state": "unwritten"}).stage()


def test_random_initial_state_has_norm_1_and_spreads_over_all(rng):
    one = statevector({"name": "qft", "qubits": 10}, initial="random")
    staged = one.stage()
    state = staged.operands["state"]
    assert abs(np.linalg.norm(state) - 1) <= 1024 * 2.0**-53
    # The largest of 1024 exponential variables of mean 2^-10: above 20 means with chance 2e-6.
    assert power(state).max() < 20 * 2.0**-10
    exact = np.fft.ifft(state, norm="ortho")
    assert np.linalg.norm(result_of(one, staged, "fp64") - exact) <= 1e-13
    source = {"file": "x", "state": "s"}
    with pytest.raises(ValidationError, match="initial must not be given beside input"):
        statevector({"name": "qft", "qubits": 4}, initial="zero", input=source)


def test_random_circuits_follow_their_seed():
    def matrices(**circuit):
        given = {"name": "random", "qubits": 4, "depth": 3, **circuit}
        return statevector(given).stage().operands["matrices"]

    assert np.array_equal(matrices(seed=1), matrices(seed=1))
    assert not np.array_equal(matrices(seed=1), matrices(seed=2))
    assert np.array_equal(matrices(), matrices())


def test_circuits_that_cannot_be_evolved_are_refused_by_check(tmp_path):
    path = tmp_path / "reset.qasm"
    path.write_text('OPENQASM 2.0; include "qelib1.inc"; qreg q[2]; h q[0]; reset q[0];')
    with pytest.raises(CircuitError, match=r"instruction 1 \(reset on qubits \[0\]\)"):
        statevector({"file": path}).check()
    with pytest.raises(CircuitError, match="there is no file"):
        statevector({"file": tmp_path / "none.qasm"}).check()
    with pytest.raises(CircuitError, match="fuse must be at least 2 for gate cx"):
        statevector({"name": "ghz", "qubits": 3}, fuse=1).check()


def test_a_circuit_without_gates_leaves_the_state(tmp_path):
    path = tmp_path / "empty.qasm"
    path.write_text("OPENQASM 2.0; qreg q[3]; creg c[3]; measure q -> c;")
    one = statevector({"file": path})
    staged = one.stage()
    assert one.argand(staged, PRECISIONS["tf32"], cpu()).plan_words == ""
    found = result_of(one, staged, "tf32")
    assert np.array_equal(found, [1, 0, 0, 0, 0, 0, 0, 0])
    assert one.assess(staged, one.reference(staged), found, PRECISIONS["tf32"], "cpu").verified
    one = statevector({"file": path}, initial="random")  # which is rounded all the same
    staged = one.stage()
    accuracy = one.assess(
        staged, one.reference(staged), result_of(one, staged, "tf32"), PRECISIONS["tf32"], "cpu"
    )
    assert accuracy.rel_frobenius > 0
    assert accuracy.verified, accuracy.reason
