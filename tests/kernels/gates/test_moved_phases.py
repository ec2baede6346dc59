"""Phases that a pass leaves to others, so that fewer sets remain."""

from __future__ import annotations

import numpy as np
import pytest
from argand import Gate
from argand.gates.canonical import gate_form
from argand.gates.fusion import Pass, checked_gates, fused_gate
from argand.gates.gate import Dependencies
from argand.gates.moved_phases import Tiled, with_fewer_sets
from argand.gates.sequence_tables import count_gates

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
