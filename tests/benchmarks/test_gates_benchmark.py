"""The benchmark of gates, on the CPU: circuits, checks that can fail, and an absent peer."""

from __future__ import annotations

import csv
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from argand import PRECISIONS, Device, Gate, Precision, plan_circuit
from argand.device import arch_for
from argand.gates.api import apply_form
from argand.gates.canonical import gate_form
from argand.gates.costs import GateCosts
from argand.gates.heuristics import mma_plans
from argand.gates.plan import MAX_WIDTH, widest_mma

from benchmarks.gates import __main__ as gates
from benchmarks.gates.check import check, evolved, random_state
from benchmarks.gates.circuits import CIRCUITS, random_unitary
from benchmarks.peers import Candidate, CannotRunError, aer, candidates, custatevec, tensordot
from benchmarks.sanitize import gates as sanitized_gates


@pytest.mark.usefixtures("quick_measuring")
def test_every_gate_and_circuit_has_a_verified_row(tmp_path: Path) -> None:
    path = tmp_path / "gates.csv"
    status = gates.main(
        ["--qubits", "6", "--widths", "1,4", "--precisions", "3xfp16,fp64", "--device", "cpu",
         "--repeats", "1", "--seconds", "0.001", "--peers", "none", "--csv", str(path)]
    )  # fmt: skip
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert status == 0
    assert all(row["verified"] == "True" for row in rows)
    assert len(rows) == 2 * (2 * 5 + len(CIRCUITS))
    assert {row["kind"] for row in rows} == {"gate"}
    assert all(float(row["predicted_us"]) > 0 for row in rows)
    circuits = [row for row in rows if row["workload"].startswith("circuit")]
    assert all(float(row["fidelity"]) == pytest.approx(1, abs=1e-9) for row in circuits)
    assert "gate-6q-4-spread" in {row["workload"] for row in rows}


@pytest.mark.parametrize("count", [1, 2])
def test_a_wrong_state_does_not_verify(rng: np.random.Generator, count: int) -> None:
    circuit = [Gate(random_unitary(rng, 2), (3, 1))] * count
    before = random_state(5, Device("cpu", "cpu"), 1)
    row = PRECISIONS["3xfp16"]
    candidate = Candidate("argand", row, "", tuple, tuple, tuple, widths=(2,) * count)
    checked = partial(check, before, circuit, "cpu", exact=partial(evolved, before, circuit))
    assert not checked(before, candidate).verified
    after = before.copy()
    for gate in circuit:
        apply_form(after, gate_form(5, gate.matrix, gate.targets), candidate.precision)
    assert checked(after, candidate).verified
    after[0] = np.nan
    assert not checked(after, candidate).verified


def test_circuits_are_what_they_are_called(rng: np.random.Generator) -> None:
    for name, make in CIRCUITS.items():
        for gate in make(7, rng):
            order = 2 ** len(gate.targets)
            np.testing.assert_allclose(
                gate.matrix @ np.conj(gate.matrix).T, np.eye(order), atol=1e-13, err_msg=name
            )
    state = np.zeros(16, np.complex128)
    state[3] = 1
    for gate in CIRCUITS["qft"](4, rng):
        form = gate_form(4, gate.matrix, gate.targets, gate.controls)
        apply_form(state, form, PRECISIONS["fp64"])
    np.testing.assert_allclose(state, np.exp(2j * np.pi * 3 * np.arange(16) / 16) / 4, atol=1e-14)
    assert len(CIRCUITS["random-400"](7, rng)) == 400
    assert len(CIRCUITS["quantum-volume"](7, rng)) == 7 * 3


def test_an_absent_peer_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTATEVEC", str(tmp_path / "none.so"))
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert custatevec.library() is None
    with pytest.raises(CannotRunError, match="custatevec-cu13"):
        custatevec.StateVector()
    assert "pip install custatevec-cu13" in custatevec.PEER.lacks()


def test_circuits_of_custatevec_are_fused_for_passes_of_one_gate(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured here, by which plans share passes, is not asked for."""
    monkeypatch.setattr("argand.gates.circuits.measured_costs", None)
    monkeypatch.setattr(custatevec, "library", lambda: Path("library.so"))
    circuit = CIRCUITS["qft"](12, rng)
    found = custatevec.PEER.candidates(qubits=12, gates=circuit, device=Device("cuda", "card"))
    flat = GateCosts(1e9, ((1.0, 1.0),) * 7, 0.0, measured=False)
    for width, one in zip((2, 3, 4, 5), found, strict=True):
        alone = plan_circuit(12, circuit, width=width, costs=flat)
        assert len(one.widths) <= len(alone.passes) == len(alone.groups)
    assert [max(one.widths) for one in found] == [2, 3, 4, 5]


def test_aer_is_absent_where_it_is_not_installed_or_would_take_minutes(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    circuit = [Gate(random_unitary(rng, 2), (3, 1))] * 2
    monkeypatch.setitem(sys.modules, "qiskit_aer", None)
    device = Device("cpu", "cpu")
    peer, other = candidates("gates", "cpu", qubits=5, gates=circuit, device=device)
    with pytest.raises(CannotRunError, match="pip install qiskit-aer"):
        peer.prepare(random_state(5, Device("cpu", "cpu"), 1))
    with pytest.raises(CannotRunError, match="at most 24 qubits, got 28"):
        aer.require(28)
    with pytest.raises(CannotRunError, match="takes at most 26 qubits, got 27"):
        tensordot.require(27)
    state = random_state(5, device, 1)
    found = other.compute(*other.prepare(state))
    accuracy = check(state, circuit, "cpu", found, other, exact=lambda: evolved(state, circuit))
    assert accuracy.verified
    found[7] += 1e-4
    accuracy = check(state, circuit, "cpu", found, other, exact=lambda: evolved(state, circuit))
    assert not accuracy.verified
    assert candidates("gates", "cpu", qubits=5, gates=circuit[:1], device=device) == []


def test_aers_matrix_of_a_gate_has_its_controls_above(rng: np.random.Generator) -> None:
    matrix, state = random_unitary(rng, 2), random_unitary(rng, 4)[0]
    expected = state.copy()
    apply_form(expected, gate_form(4, matrix, (0, 1), (2, 3)), PRECISIONS["fp64"])
    found = aer.full_matrix(Gate(matrix, (0, 1), (2, 3))) @ state
    np.testing.assert_allclose(found, expected, atol=1e-15)


@pytest.mark.parametrize("precision", ["fp32", "3xfp16", "3xtf32"])
def test_the_sanitizer_meets_every_kernel(rng: np.random.Generator, precision: str) -> None:
    row = PRECISIONS[precision]
    arch = arch_for(90)
    found = list(sanitized_gates.gates(row, rng))
    forms = [gate_form(n, gate.matrix, gate.targets, gate.controls) for n, gate in found]
    first = 1 if row.exact_operands else 4
    assert {form.width for form in forms} == set(range(first, widest(row) + 1))
    assert {form.monomial for form in forms} == ({False, True} if row.exact_operands else {False})
    assert any(0 in form.controls for form in forms)
    # Without controls each block of a kernel takes more tiles than it holds.
    for (n, _), form in zip(found, forms, strict=True):
        if n == sanitized_gates._QUBITS and not form.controls and not row.exact_operands:
            inside = form.targets[0] == 0
            for plan in mma_plans(row, arch, width=form.width, targets_qubit0=inside):
                tiles = 2 ** (n - form.width) // plan.columns
                assert tiles > plan.blocks * plan.stages


def widest(row: Precision) -> int:
    """Qubits of the widest gate that has a kernel."""
    return MAX_WIDTH if row.exact_operands else widest_mma(row)
