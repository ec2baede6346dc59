"""Circuits on a GPU: the state, the record, and costs that are measured there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Gate, measure_gate_costs, plan_circuit, run_circuit
from argand.device import Device
from argand.gates.canonical import gate_form
from argand.gates.costs import _GPUS, gate_costs, kept_costs, table_costs
from argand.gates.prepared_gates import prepared_gates
from argand.gates.sequences import SharedPass

from tests.kernels.gates.gate_cases import dense_gate, gate_bound, random_state, random_unitary
from tests.kernels.gates.test_diagonal_runs import COSTS, ising_circuit
from tests.kernels.gates.test_gate_circuits import FLAT, evolved, random_circuit

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", ["3xfp16", "3xtf32", "fp64", "fp16"])
@pytest.mark.parametrize("qubits", [5, 16])
def test_a_circuit_is_its_gates(
    cp: Any, rng: np.random.Generator, precision: str, qubits: int
) -> None:
    gates = random_circuit(rng, qubits, 60)
    row = PRECISIONS[precision]
    state = cp.asarray(random_state(rng, qubits).astype(row.output))
    expected = evolved(state, gates)
    plan = plan_circuit(qubits, gates, precision=precision, costs=FLAT)
    record = run_circuit(state, plan, reference=expected)
    bound = sum(gate_bound(row, form.width) for form in record.plan.forms) + 2.0**-22
    assert float(cp.linalg.norm(state - expected)) <= bound
    assert record.norm_drift <= bound
    assert record.fidelity is not None
    assert 1 - record.fidelity <= bound**2 + 2.0**-30
    assert 0 < record.seconds < 100  # one of them may compile products of `gemm`
    assert 0 < record.predicted_seconds < 1


@pytest.mark.parametrize("precision", ["3xfp16", "3xtf32"])
@pytest.mark.parametrize("pairs", ["chain", "all"])
def test_a_circuit_of_cx_and_phases_is_its_gates(
    cp: Any, rng: np.random.Generator, precision: str, pairs: str
) -> None:
    """Its phases are part of dense gates, or are applied in shared passes."""
    qubits = 16
    gates = ising_circuit(qubits, pairs)
    row = PRECISIONS[precision]
    state = cp.asarray(random_state(rng, qubits).astype(row.output))
    expected = evolved(state, gates)
    plan = plan_circuit(qubits, gates, precision=precision, costs=COSTS)
    assert len(plan.groups) < len(plan.passes)
    assert any(form.diagonal and form.controls for form in plan.forms) == (pairs == "all")
    record = run_circuit(state, plan, reference=expected)
    bound = sum(gate_bound(row, form.width) for form in plan.forms) + 2.0**-22
    assert 0 < float(cp.linalg.norm(state - expected)) <= bound
    assert record.norm_drift <= bound


@pytest.mark.parametrize("precision", ["3xfp16", "3xtf32"])
def test_long_circuits_lose_no_more_than_fp32(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """Losses in one direction add up: the norm says so, and the error beside fp32's."""
    qubits, count, width = 18, 48, 6 if precision == "3xtf32" else 7
    gates = [
        Gate(random_unitary(rng, width), tuple(map(int, rng.permutation(qubits)[:width])))
        for _ in range(count)
    ]
    start = cp.asarray(random_state(rng, qubits))
    truth, fp32 = start, start.astype(np.complex64)
    for gate in gates:
        truth = dense_gate(truth, gate.matrix, gate.targets)
        fp32 = dense_gate(fp32, gate.matrix, gate.targets, kind=np.complex64)
    state = start.astype(np.complex64)
    plan = plan_circuit(qubits, gates, precision=precision, width=width, costs=FLAT)
    record = run_circuit(state, plan, reference=truth)
    assert float(cp.linalg.norm(state - truth)) <= 2 * float(cp.linalg.norm(fp32 - truth))
    # Truncation bias without compensation is 2^-24 or more a gate, always in the same direction.
    assert record.norm_drift <= count * 2.0**-24 / 4


def test_costs_are_measured_on_the_card(
    cp: Any, gpu: Device, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the first plan for states of a size; a plan for another size measures that."""
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path))
    row, gates = PRECISIONS["3xfp16"], [(np.eye(2)[::-1], (0,))]
    assert not gate_costs(row, gpu, 24).measured
    assert plan_circuit(24, gates, device=gpu).measured
    found = gate_costs(row, gpu, 24)
    assert kept_costs(row, gpu) == {24: found}
    assert found.call_seconds > 0
    assert min(cost for both in found.widths for cost in both) > 0
    assert found != table_costs(row, gpu)
    assert run_circuit(cp.ones(2**12, cp.complex64), gates).plan.measured
    assert set(kept_costs(row, gpu)) == {12, 24}
    assert plan_circuit(24, gates, device=gpu).predicted_seconds == found.of_form(
        24, gate_form(24, *gates[0]), 8
    )
    again = measure_gate_costs("3xfp16", gpu, qubits=24, settle=0.01)
    assert gate_costs(row, gpu, 24) == again
    _GPUS.forget()  # as in a new process
    assert gate_costs(row, gpu, 24) == again


def test_kernels_are_compiled_beside_each_other(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a circuit's gates, before the first of them is loaded; each kernel once."""
    from argand.gates import gpu

    begun: list[str] = []
    monkeypatch.setattr(gpu, "compile_later", lambda source, target: begun.append(source))
    state = cp.asarray(random_state(rng, 12).astype(np.complex64))
    widths = (1, 2, 5, 5)
    forms = [gate_form(12, random_unitary(rng, width), range(3, 3 + width)) for width in widths]
    prepared_gates(state, forms, PRECISIONS["3xtf32"])
    assert len(begun) == len(set(begun)) == len(set(widths))


@pytest.mark.parametrize("shared", [True, False])
def test_passes_launched_together_apply_their_gates(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, *, shared: bool
) -> None:
    """They run as kernels, as graphs from the third call on, at other addresses and within a chunk.

    Between them is a gate on 8 qubits, which is a product. Bits are those of gates one by one, but
    where two share a pass.
    """
    monkeypatch.setattr("argand.gates.gpu_passes._MAX_KERNELS", 3)
    qubits, row = 14, PRECISIONS["3xfp16"]
    places = [rng.permutation(qubits)[:width].tolist() for width in (1, 2, 4, 3, 5, 8, 7, 4)]
    places += [[0, 2, 5, 7], [1, 3, 4, 9]]
    forms = [gate_form(qubits, random_unitary(rng, len(place)), place) for place in places]
    groups = [SharedPass(1)] * len(forms)
    if shared:
        groups[-2:] = [SharedPass(2, tuple(range(12)))]
    memory, given = cp.zeros((2, 2**qubits + 1), np.complex64), random_state(rng, qubits)
    apply = prepared_gates(memory[0, :-1], forms, row, groups)
    gates = [prepared_gates(memory[0, :-1], [one], row) for one in forms]
    for start in (0, 0, 0, 0, 1, 0):
        state, expected = memory[:, start:][:, : 2**qubits]
        state[...] = expected[...] = cp.asarray(given, np.complex64)
        apply(state)
        for gate in gates:
            gate(expected)
        bound = 4 * gate_bound(row, 4) if shared else 0
        assert float(cp.linalg.norm(state - expected)) <= bound
