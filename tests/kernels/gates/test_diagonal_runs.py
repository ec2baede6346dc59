"""Gates in a row that are diagonal, and phases that share a pass: those that are found, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import Gate, apply_gate, plan_circuit
from argand.gates import circuit_search
from argand.gates.api import apply_form
from argand.gates.canonical import gate_form
from argand.gates.costs import GateCosts, SequenceCosts
from argand.gates.diagonal_runs import (
    diagonal_runs,
    fewest_tiles,
    phases_beside_others,
    split_phases,
)
from argand.gates.fusion import Pass, checked_gates, fused_gate
from argand.gates.gate import Dependencies, diagonal_qubits
from argand.gates.moved_phases import Tiled, with_fewer_sets
from argand.gates.phases import in_rows, is_controlled_phase, is_phase, phase_tables
from argand.gates.sequence_tables import count_gates, tables
from argand.gates.sequences import in_groups, sequences_of

from tests.kernels.gates.gate_cases import random_state
from tests.kernels.gates.test_gate_sequences import PLAN

X = np.array([[0, 1], [1, 0]])
H = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
COSTS = GateCosts(
    4e12, ((1.0, 1.0),) * 4 + ((2.0, 2.0),) * 3, 0.0, measured=True,
    sequences=(SequenceCosts(12, (1.2, 1.2, 1.4, 1.6, 1.8, 2.1, 2.3, 2.5)),),
)  # fmt: skip


def phase(angle: float, qubit: int) -> Gate:
    return Gate(np.diag([1, np.exp(1j * angle)]), (qubit,))


def cx(control: int, target: int) -> Gate:
    return Gate(X, (target,), (control,))


def rotated(angle: float, a: int, b: int) -> list[Gate]:
    """Exp(-i angle / 2 ZZ) of CX and a phase."""
    half = np.exp(-0.5j * angle)
    return [cx(a, b), Gate(np.diag([half, half.conj()]), (b,)), cx(a, b)]


def controlled_phase(angle: float, a: int, b: int) -> list[Gate]:
    """A controlled phase of CX and phases, as OpenQASM's cu1."""
    return [phase(angle / 2, a), cx(a, b), phase(-angle / 2, b), cx(a, b), phase(angle / 2, b)]


def evolved(state: Any, gates: Sequence[Gate]) -> Any:
    found = state.copy()
    for gate in gates:
        apply_gate(found, gate.matrix, gate.targets, controls=gate.controls)
    return found


def test_a_phase_of_cx_is_one_gate() -> None:
    """Gates on other qubits may stand between its own."""
    own = rotated(0.3, 4, 2)
    gates = [Gate(H, (0,)), own[0], cx(0, 1), own[1], cx(1, 3), own[2], cx(2, 0)]
    runs = diagonal_runs(5, gates)
    assert [run.numbers for run in runs] == [(0,), (2,), (4,), (1, 3, 5), (6,)]
    assert diagonal_qubits(runs[3].gate) == {2, 4}


def test_a_gate_between_on_a_further_qubit_keeps_them_apart() -> None:
    gates = [cx(0, 1), cx(1, 2), phase(0.3, 1), cx(0, 1)]
    assert [run.numbers for run in diagonal_runs(3, gates)] == [(0,), (1,), (2,), (3,)]


def test_a_gate_of_many_controls_takes_no_matrix_of_all_its_qubits() -> None:
    """As Grover's search has between gates on each qubit: that of 24 qubits would be 4 PiB."""
    controlled = Gate(np.diag([1, -1]), (0,), tuple(range(1, 24)))
    around = [Gate(H, (qubit,)) for qubit in range(24)]
    runs = diagonal_runs(24, [*around, controlled, *around])
    assert [run.numbers for run in runs] == [(number,) for number in range(49)]


def test_h_around_cx_is_a_controlled_phase() -> None:
    """To rounding, which leaves no entry beside the diagonal."""
    (run,) = diagonal_runs(4, [Gate(H, (3,)), cx(1, 3), Gate(H, (3,))])
    assert ({*run.gate.qubits}, len(run.gate.controls), run.numbers) == ({1, 3}, 1, (0, 1, 2))
    assert run.gate.matrix[0, 0] == 1
    np.testing.assert_allclose(run.gate.matrix, np.diag([1, -1]), atol=1e-15)


def test_what_is_nearly_diagonal_stays() -> None:
    turned = np.array([[np.cos(1e-7), -np.sin(1e-7)], [np.sin(1e-7), np.cos(1e-7)]])
    gates = [cx(0, 1), Gate(turned, (0,)), cx(0, 1)]
    assert len(diagonal_runs(2, gates)) == 3


def test_gates_that_undo_each_other_are_none() -> None:
    (run,) = diagonal_runs(2, [cx(0, 1), cx(0, 1)])
    assert run.numbers == (0, 1)
    assert split_phases([run]) == []
    assert plan_circuit(2, [cx(0, 1), cx(0, 1)]).predicted_seconds == 0


def test_phases_of_one_qubit_join_across_what_they_commute_with() -> None:
    """A controlled phase of CX and phases is one gate; those of its qubits undo each other."""
    gates = [*controlled_phase(0.4, 0, 1), *controlled_phase(0.7, 0, 2), *rotated(0.5, 1, 2)]
    split = split_phases(diagonal_runs(3, gates))
    mixed = [run.gate for run in split if run.gate.controls]
    assert [set(gate.qubits) for gate in mixed] == [{0, 1}, {0, 2}, {1, 2}]
    angles = [np.angle(gate.matrix[1, 1]) for gate in mixed]
    np.testing.assert_allclose(angles, [0.4, 0.7, -1.0], atol=1e-14)
    alone = [run.gate.qubits for run in split if not run.gate.controls]
    assert len(alone) == len(set(alone)) <= 3
    assert phases_beside_others(diagonal_runs(3, [*gates, Gate(H, (0,))])) == 3


@pytest.mark.parametrize("seed", range(6))
def test_a_circuit_stays_the_same(seed: int) -> None:
    """Drawn of few kinds of gates, so that many of them follow each other on the same qubits."""
    rng, qubits = np.random.default_rng(seed), 4
    gates: list[Gate] = []
    for _ in range(40):
        a, b = (int(qubit) for qubit in rng.permutation(qubits)[:2])
        kind, angle = rng.integers(6), rng.uniform(-3, 3)
        drawn = (
            [cx(a, b)], [Gate(H, (a,))], [phase(angle, a)], rotated(angle, a, b),
            controlled_phase(angle, a, b), [Gate(H, (b,)), cx(a, b), Gate(H, (b,))],
        )  # fmt: skip
        gates += drawn[kind]
    checked = checked_gates(qubits, gates)
    runs = diagonal_runs(qubits, checked)
    assert sorted(number for run in runs for number in run.numbers) == [*range(len(gates))]
    assert len(runs) < len(gates) - 10
    state = random_state(rng, qubits)
    expected = evolved(state, gates)
    for one in (runs, split_phases(runs)):
        found = evolved(state, [run.gate for run in one])
        np.testing.assert_allclose(found, expected, atol=1e-13)


def ising_circuit(qubits: int, pairs: str) -> list[Gate]:
    """Two layers of exp(-i angle / 2 ZZ) of all pairs, or of neighbours, of CX, and of H."""
    chosen = [(a, b) for b in range(qubits) for a in range(b) if pairs == "all" or b == a + 1]
    gates = []
    for angle in (0.3, 0.8):
        gates += [gate for a, b in chosen for gate in rotated(angle, a, b)]
        gates += [Gate(H, (qubit,)) for qubit in range(qubits)]
    return gates


@pytest.mark.parametrize("pairs", ["chain", "all"])
def test_a_plan_with_phases_is_its_circuit(pairs: str) -> None:
    """Phases of all pairs take passes of their own, those of neighbours are part of products."""
    rng, qubits = np.random.default_rng(5), 14
    gates = ising_circuit(qubits, pairs)
    assert PLAN is not None
    plan = plan_circuit(qubits, gates, precision="fp64", costs=COSTS)
    apart = plan_circuit(qubits, gates, precision="fp64", costs=replace(COSTS, sequences=()))
    assert plan.predicted_seconds < apart.predicted_seconds
    assert {number for one in plan.passes for number in one.gates} == {*range(len(gates))}
    assert f"{len(gates)} gates" in str(plan)
    phases = [form for form in plan.forms if form.diagonal and form.controls]
    assert (len(phases) > len(gates) / 5) == (pairs == "all")
    for group, members in zip(plan.groups, in_groups(plan.groups), strict=True):
        if group.tile:  # the kernel takes so many phases and products
            tables(qubits, plan.forms[members], group.tile, PLAN)
    state = random_state(rng, qubits)
    expected = evolved(state, gates)
    for form in plan.forms:
        apply_form(state, form, plan.precision)
    np.testing.assert_allclose(state, expected, atol=1e-13)


@pytest.mark.parametrize(("qubits", "apart"), [(16, ()), (18, (5,))])
def test_phases_apart_are_searched_where_fewer_passes_are_possible(
    qubits: int, apart: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tiles of 12 hold the pairs of a chain of 16 qubits, but not those of a wheel of 18."""
    searched = set[bool]()

    def noted(*given: Any, phases: bool, **options: Any) -> Any:
        searched.add(phases)
        return sequences_of(*given, phases=phases, **options)

    monkeypatch.setattr(circuit_search, "sequences_of", noted)
    gates = [gate for q in range(qubits - 1) for gate in rotated(0.3, q, q + 1)]
    for step in apart:
        gates += [gate for q in range(qubits) for gate in rotated(0.3, q, (q + step) % qubits)]
    gates += [Gate(H, (qubit,)) for qubit in range(qubits)]
    runs = diagonal_runs(qubits, checked_gates(qubits, gates))
    assert fewest_tiles(runs, 12) == 2
    assert fewest_tiles(runs[:-8], 12) == 1
    plan_circuit(qubits, gates, costs=COSTS)
    assert searched == ({False, True} if apart else {False})


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
