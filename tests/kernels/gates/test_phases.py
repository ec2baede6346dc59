"""Phases that share a pass over a state with other gates: their sets of qubits and tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import Gate, apply_gate
from argand.gates import sequence_plan as plans
from argand.gates import sequence_tables as tables
from argand.gates.canonical import gate_form
from argand.gates.costs import SequenceCosts
from argand.gates.fusion import checked_gates, fused_gate
from argand.gates.phases import in_rows, is_controlled_phase, is_phase, phase_tables
from argand.gates.sequences import in_groups, sequences_of

from tests.kernels.gates.test_gate_sequences import PLAN


def qft(qubits: int) -> list[Gate]:
    gates = []
    for target in reversed(range(qubits)):
        gates.append(Gate(np.array([[1, 1], [1, -1]]) / 2**0.5, (target,)))
        for control in range(target):
            phase = np.diag([1, np.exp(1j * np.pi / 2 ** (target - control))])
            gates.append(Gate(phase, (target,), (control,)))
    return gates


def test_phases_need_one_qubit_of_a_tile(rng: np.random.Generator) -> None:
    """A Fourier transform of 15 qubits takes two passes; their tables say what its gates do."""
    qubits = 15
    circuit = checked_gates(qubits, qft(qubits))
    passes, groups = sequences_of(qubits, circuit, 12, PLAN.gates)
    assert len(groups) == 2
    assert sorted(number for one in passes for number in one.gates) == [*range(len(circuit))]
    state = rng.standard_normal((2**qubits, 2)).view(complex)[:, 0]
    expected = state.copy()
    for gate in circuit:
        apply_gate(expected, gate.matrix, gate.targets, controls=gate.controls)
    fused = [fused_gate([circuit[n] for n in one.gates], one.qubits) for one in passes]
    forms = [gate_form(qubits, gate.matrix, gate.targets, gate.controls) for gate in fused]
    for group, members in zip(groups, in_groups(groups), strict=True):
        own = forms[members]
        assert sum(tables.count_gates(own, group.tile)) < 12
        products = iter([form for form in own if not is_phase(form)])
        outside = [qubit for qubit in range(qubits) if qubit not in group.tile]
        gates, _, phases = tables.tables(qubits, own, group.tile, PLAN)
        for gate in gates:
            if gate["kind"] != plans.PHASE:
                form = next(products)
                apply_gate(state, form.matrix, form.targets, controls=form.controls)
                continue
            numbers = np.arange(2**qubits)
            bits = [(numbers >> qubit & 1) for qubit in group.tile]
            row = sum(
                bit * int(one) for bit, one in zip(bits, gate["placed"]["phase_row"], strict=False)
            )
            table = phases[gate["index"]]
            state *= table["inside"][row]
            for bit in range(8):
                for place, qubit in enumerate(outside):
                    both = (row >> bit & 1) & (numbers >> qubit & 1)
                    state *= np.where(both, table["outside"][bit, place], 1)
    np.testing.assert_allclose(state, expected, atol=1e-12)


def test_what_is_a_phase() -> None:
    def form(matrix: Any, *targets: int, controls: tuple[int, ...] = ()) -> Any:
        return gate_form(5, matrix, targets, controls)

    controlled = form(np.diag([1, 1j]), 3, controls=(1,))
    rotation = form(np.diag([1, 1j, 1j, 1]), 3, 1)
    assert is_phase(controlled)
    assert is_controlled_phase(controlled)
    assert is_phase(rotation)
    assert not is_controlled_phase(rotation)
    assert not is_phase(form(np.diag([1, 1j]), 3, controls=(1, 2)))
    assert not is_phase(form(np.eye(2)[::-1], 3))
    own, mixed = phase_tables([controlled, form(np.diag([1, -1]), 3)], [3], [0, 1])
    assert own.tolist() == [1, -1]
    assert mixed.tolist() == [[1, 1j]]
    with pytest.raises(ValueError, match=r"controlled ones with one qubit there, got \(1, 3\)"):
        phase_tables([rotation], [3], [1])
    halves = in_rows([controlled, rotation, form(np.diag([1, 1j]), 4, controls=(0,))], range(5), 3)
    assert [(len(one), inside) for one, inside in halves] == [(2, (1, 3)), (1, (0, 4))]


def test_phases_between_two_groups_of_qubits_are_few_sets() -> None:
    """Four qubits with eight others, and with qubits outside, as in a Fourier transform."""
    pairs = [(one, other) for one in range(8, 12) for other in (*range(8), 12, 13)]
    forms = [gate_form(14, np.diag([1, 1j]), (one,), (other,)) for one, other in pairs]
    found = in_rows(forms, range(12), 8)
    assert len(found) == 2
    assert all(len(inside) <= 8 for _, inside in found)
    assert sorted(id(form) for own, _ in found for form in own) == sorted(map(id, forms))


def test_a_set_of_phases_counts_as_gates() -> None:
    costs = SequenceCosts(12, (1.2, 1.2, 1.4, 1.8, 2.0), phases=1.5)
    assert costs.copies(2) == 1.2
    assert costs.copies(2, 1) == pytest.approx(1.6)
    assert costs.copies(0, 1) == pytest.approx(1.2)
    assert costs.copies(4, 2) == pytest.approx(2.6)  # two beyond the most, each as the last two
    for products, sets in ((3, 1), (4, 1)):
        longer = costs.gates_of(costs.copies(products, sets))
        assert longer == pytest.approx(products + 1.5 * sets)
