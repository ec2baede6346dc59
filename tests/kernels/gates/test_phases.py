"""Phases that share a pass over a state: their sets of qubits, tables, those left to others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import Gate
from argand.gates.canonical import gate_form
from argand.gates.costs import SequenceCosts
from argand.gates.fusion import Pass, checked_gates, fused_gate
from argand.gates.gate import Dependencies
from argand.gates.moved_phases import Tiled, with_fewer_sets
from argand.gates.phases import in_rows, is_controlled_phase, is_phase, phase_tables
from argand.gates.sequence_tables import count_gates


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


LOW = (0, 1, 2, 3)


def qft(qubits: int) -> list[Gate]:
    gates = []
    for target in reversed(range(qubits)):
        gates.append(Gate(np.array([[1, 1], [1, -1]]) / 2**0.5, (target,)))
        for control in range(target):
            phase = np.diag([1, np.exp(1j * np.pi / 2 ** (target - control))])
            gates.append(Gate(phase, (target,), (control,)))
    return gates


def sets(qubits: int, gates: list[Gate], groups: list[Tiled]) -> int:
    found = 0
    for passes, tile in groups:
        fused = [fused_gate([gates[n] for n in one.gates], one.qubits) for one in passes]
        forms = [gate_form(qubits, one.matrix, one.targets, one.controls) for one in fused]
        found += count_gates(forms, tile)[1]
    return found


def one_each(gates: list[Gate], numbers: range) -> list[Pass]:
    return [Pass((number,), tuple(sorted(gates[number].qubits))) for number in numbers]


@pytest.mark.parametrize("qubits", [20, 28])
def test_phases_of_low_qubits_wait_for_a_pass_that_has_a_set_of_them(qubits: int) -> None:
    """A transform's passes, eight high qubits each: those with the low four need a set apart."""
    gates = checked_gates(qubits, qft(qubits))
    controlled_phases = [number for number, gate in enumerate(gates) if gate.controls]
    ends = [number for number, gate in enumerate(gates) if not gate.controls][8::8]
    groups: list[Tiled] = []
    for number, (first, last) in enumerate(zip([0, *ends], [*ends, len(gates)], strict=True)):
        high = max(12, qubits - 8 * number)
        groups.append((one_each(gates, range(first, last)), (*LOW, *range(high - 8, high))))
    moved = with_fewer_sets(qubits, gates, groups, controlled_phases)
    assert sets(qubits, gates, moved) < sets(qubits, gates, groups)
    order = [number for passes, _ in moved for one in passes for number in one.gates]
    assert sorted(order) == [*range(len(gates))]
    place = {number: at for at, number in enumerate(order)}
    for number, followers in enumerate(Dependencies(qubits, gates).followers):
        assert all(place[number] < place[follower] for follower in followers)
    for passes, tile in moved:
        for one in passes:
            assert {*one.qubits} & {*tile}
            assert one.gates[0] in controlled_phases or {*one.qubits} <= {*tile}


def test_a_set_stays_where_no_other_has_its_phases() -> None:
    flip = np.eye(2)[::-1]
    phase = np.diag([1, 1j])
    gates = checked_gates(
        16, [Gate(phase, (4,), (5,)), Gate(flip, (4,)), Gate(flip, (5,)), Gate(phase, (4,), (5,))]
    )
    groups: list[Tiled] = [(one_each(gates, range(4)), (*LOW, *range(4, 12)))]
    assert with_fewer_sets(16, gates, groups, [0, 3]) == groups
