"""Circuits: what fusing may and may not do, the plan that is chosen, and the record of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import Gate, plan_circuit, run_circuit
from argand.gates import circuit_search
from argand.gates.costs import GateCosts, SequenceCosts
from argand.gates.fusion import PassRules, checked_gates, fuse, fused_gate
from argand.gates.gate import Dependencies, diagonal_qubits
from argand.gates.sequences import TILE_BEAM_WIDTHS, SearchMemo, sequences_of
from argand.precision import PRECISIONS

from tests.kernels.gates.gate_cases import dense_gate, gate_bound, random_state, random_unitary

Array = npt.NDArray[Any]
FLAT = GateCosts(1e9, ((1.0, 1.0),) * 7, 0.0, measured=False)


def random_circuit(rng: np.random.Generator, qubits: int, count: int) -> list[Gate]:
    """Gates on one to three qubits, some diagonal, some controlled."""
    gates = []
    for _ in range(count):
        width = int(rng.integers(1, 4))
        order = [int(qubit) for qubit in rng.permutation(qubits)]
        matrix = random_unitary(rng, width)
        if rng.random() < 0.4:
            matrix = np.diag(np.exp(2j * np.pi * rng.random(2**width)))
        controls = tuple(order[width : width + int(rng.integers(0, 3))])
        gates.append(Gate(matrix, tuple(order[:width]), controls))
    return gates


def evolved(state: Array, gates: Sequence[Gate]) -> Array:
    for gate in gates:
        state = dense_gate(state, gate.matrix, gate.targets, gate.controls)
    return state


def flat(qubits: tuple[int, ...]) -> float:
    return 1.0 if len(qubits) <= 7 else 1e3


@pytest.mark.parametrize("beam_width", [1, 8])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 6])
def test_fusing_keeps_every_gate_and_what_depends_on_it(
    rng: np.random.Generator, width: int, beam_width: int
) -> None:
    gates = checked_gates(9, random_circuit(rng, 9, 120))
    passes = fuse(9, gates, PassRules(width, flat), beam_width=beam_width)
    order = [number for one in passes for number in one.gates]
    assert sorted(order) == list(range(len(gates)))
    assert all(len(one.qubits) <= width or len(one.gates) == 1 for one in passes)
    position = {number: index for index, number in enumerate(order)}
    for number, followers in enumerate(Dependencies(9, gates).followers):
        assert all(position[number] < position[follower] for follower in followers)
    state = random_state(rng, 9)
    fused = [fused_gate([gates[n] for n in one.gates], one.qubits) for one in passes]
    np.testing.assert_allclose(evolved(state, fused), evolved(state, gates), atol=1e-13)


def test_gates_that_share_a_diagonal_qubit_need_no_order(rng: np.random.Generator) -> None:
    phase = np.diag([1, 1j])
    gates = [Gate(phase, (0,), (1,)), Gate(phase, (1,), (2,)), Gate(phase, (2,), (0,))]
    assert [diagonal_qubits(gate) for gate in gates] == [{0, 1}, {1, 2}, {0, 2}]
    assert Dependencies(3, gates).counts == [0, 0, 0]
    between = [gates[0], Gate(random_unitary(rng, 1), (1,)), gates[1], gates[2]]
    found = Dependencies(3, between)
    assert found.counts == [0, 1, 1, 0]
    assert found.followers[:2] == [[1], [2]]


@pytest.mark.parametrize("phases", [False, True])
def test_searches_that_know_others_find_the_same(rng: np.random.Generator, phases: bool) -> None:
    gates = checked_gates(14, random_circuit(rng, 14, 80))
    memo = SearchMemo()
    for beam_width in (4, 32, 16, 1):
        found = sequences_of(14, gates, 12, 8, beam_width=beam_width, phases=phases, memo=memo)
        assert found == sequences_of(14, gates, 12, 8, beam_width=beam_width, phases=phases)
    assert memo.tiles
    assert memo.gates


def test_fewer_passes_for_wider_gates(rng: np.random.Generator) -> None:
    gates = [Gate(random_unitary(rng, 2), (q, q + 1)) for _ in range(6) for q in range(11)]
    counts = [len(fuse(12, gates, PassRules(width, flat))) for width in range(2, 8)]
    assert counts[0] <= 66
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[0] / 3


def test_tiles_of_about_the_same_time_are_searched_long(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short searches alone would decide for the tile whose search comes late to a good plan.

    The best of them is searched again by each fewer number of beams where fewer passes may be.
    """
    searched = Counter[int]()

    def counted(qubits: int, gates: Any, size: int, most: int, **options: Any) -> Any:
        searched[size] += 1
        return sequences_of(qubits, gates, size, most, **options)

    monkeypatch.setattr(circuit_search, "sequences_of", counted)
    gates = [Gate(random_unitary(rng, 2), (low, low + 1)) for low in range(10)]
    again = 1 + len(TILE_BEAM_WIDTHS)
    for rows, larger, times in ((1, 1.05, (2, 2)), (9, 1.05, (again, 2)), (9, 9.0, (again, 1))):
        searched.clear()
        tiles = SequenceCosts(12, (0.1,) * 8), SequenceCosts(13, (0.1 * larger,) * 8)
        plan_circuit(14, gates * rows, costs=replace(FLAT, sequences=tiles))
        assert (searched[12], searched[13]) == times


def test_the_plan_takes_the_cheapest_width(rng: np.random.Generator) -> None:
    gates = [
        Gate(random_unitary(rng, 2), tuple(map(int, rng.permutation(10)[:2]))) for _ in range(60)
    ]
    dear = GateCosts(1e9, ((1.0, 1.0), (1.0, 1.0), *((50.0, 50.0),) * 5), 0.0, measured=True)
    assert plan_circuit(10, gates, costs=FLAT).width == 7
    plan = plan_circuit(10, gates, costs=dear)
    assert plan.width <= 2
    best = min(
        plan_circuit(10, gates, costs=dear, width=width).predicted_seconds for width in range(1, 8)
    )
    assert plan.predicted_seconds <= best
    assert "60 gates on 10 qubits at fp32" in str(plan)
    assert "measured here" in str(plan)
    assert len(plan.listing().splitlines()) == len(plan.passes) + 1


def test_gates_share_passes_where_a_narrow_gate_is_cheapest_alone(
    rng: np.random.Generator,
) -> None:
    """On an H200 passes of four qubits over 25 may take longer alone than more passes of three."""
    gates = [
        Gate(random_unitary(rng, 2), tuple(map(int, rng.permutation(12)[:2]))) for _ in range(40)
    ]
    alone = GateCosts(1e9, (*((1.0, 1.0),) * 3, *((9.0, 9.0),) * 4), 0.0, measured=True)
    costs = replace(alone, sequences=(SequenceCosts(12, (1.0,) * 8),))
    assert plan_circuit(12, gates, costs=alone).width == 3
    plan, narrow = (plan_circuit(12, gates, costs=costs, width=width) for width in (None, 3))
    assert plan.width == 4
    assert len(plan.groups) < len(plan.passes)
    assert plan.predicted_seconds < narrow.predicted_seconds
    assert len(narrow.groups) == len(narrow.passes)


@pytest.mark.parametrize("precision", ["3xfp16", "fp64", "tf32"])
@pytest.mark.parametrize("qubits", [1, 2, 5, 9])
def test_a_circuit_is_its_gates(rng: np.random.Generator, precision: str, qubits: int) -> None:
    gates = [
        Gate(gate.matrix, gate.targets, gate.controls)
        for gate in random_circuit(rng, 5, 40)
        if max(gate.qubits) < qubits
    ]
    row = PRECISIONS[precision]
    state = random_state(rng, qubits).astype(row.output)
    expected = evolved(state, gates)
    record = run_circuit(state, gates, precision=precision, reference=expected)
    bound = sum(gate_bound(row, form.width) for form in record.plan.forms) + 2.0**-22
    assert np.linalg.norm(state - expected) <= bound
    assert record.norm_drift <= bound
    assert record.fidelity is not None
    assert 1 - record.fidelity <= bound**2 + 2.0**-30
    assert record.seconds > 0
    assert record.predicted_seconds == record.plan.predicted_seconds


def test_gates_of_qiskit_are_matrices() -> None:
    """docs/python.md has these lines."""
    drawn = pytest.importorskip("qiskit.circuit.random").random_circuit
    library, info = (pytest.importorskip(f"qiskit.{name}")
                     for name in ("circuit.library", "quantum_info"))  # fmt: skip
    defined = library.DiagonalGate([1, 1j, -1, 1])  # which NumPy makes no matrix of
    for seed in range(5):
        circuit = drawn(4, 6, max_operands=4, seed=seed)
        circuit.append(defined, [2, 0])
        circuit.append(defined.control(1, ctrl_state=0), [3, 0, 1])
        gates = [(info.Operator(one.operation), [circuit.find_bit(q).index for q in one.qubits])
                 for one in circuit.data]  # fmt: skip
        state = np.eye(16, dtype=complex)[0]
        run_circuit(state, gates)
        expected = info.Statevector(circuit).data * np.exp(-1j * circuit.global_phase)
        np.testing.assert_allclose(state, expected, atol=1e-12)


def test_one_array_may_be_filled_for_each_gate(rng: np.random.Generator) -> None:
    """Whether the gates are objects, or tuples that a generator makes one after the other."""
    matrices = [random_unitary(rng, 1) for _ in range(4)]
    found, expected = np.eye(1, 16, dtype="complex64")[0], np.eye(1, 16, dtype="complex64")[0]
    run_circuit(expected, [(matrix, (qubit,)) for qubit, matrix in enumerate(matrices)])

    def gates(of: Callable[..., Any]) -> Iterator[Any]:
        array = np.empty((2, 2), complex)
        for qubit, matrix in enumerate(matrices):
            array[...] = matrix
            yield of(array, (qubit,))

    for of in (Gate, lambda *given: given):
        found[...] = np.eye(1, 16)[0]
        run_circuit(found, list(gates(of)) if of is Gate else gates(of))
        np.testing.assert_array_equal(found, expected)


def test_a_plan_can_be_run_again(rng: np.random.Generator) -> None:
    gates = [(random_unitary(rng, 2), (0, 3)), (random_unitary(rng, 1), (2,), (1,))]
    plan = plan_circuit(4, gates, precision="fp64")
    first, second = (random_state(rng, 4) for _ in range(2))
    for state in (first, second):
        expected = evolved(state, checked_gates(4, gates))
        assert run_circuit(state, plan).plan is plan
        np.testing.assert_allclose(state, expected, atol=1e-14)


def test_no_gates_change_nothing(rng: np.random.Generator) -> None:
    state = random_state(rng, 3)
    before = state.copy()
    record = run_circuit(state, [])
    np.testing.assert_array_equal(state, before)
    assert (record.plan.passes, record.predicted_seconds, record.norm_drift) == ((), 0, 0)
    assert np.isnan(run_circuit(np.zeros(8, np.complex64), []).norm_drift)


def test_what_is_refused(rng: np.random.Generator) -> None:
    good = Gate(np.eye(2), (0,))
    with pytest.raises(ValueError, match="gate 1: targets must be qubits from 0 to 2, got 3"):
        plan_circuit(3, [good, Gate(np.eye(2), (3,))])
    with pytest.raises(ValueError, match=r"gate 0: matrix must have shape \(4, 4\)"):
        plan_circuit(3, [(np.eye(2), (0, 1))])
    with pytest.raises(ValueError, match="width must be at least 1, got 0"):
        plan_circuit(3, [good], width=0)
    plan = plan_circuit(3, [good])
    with pytest.raises(ValueError, match="the plan is for 3 qubits, the state has 2"):
        run_circuit(np.ones(4, np.complex64), plan)
    with pytest.raises(ValueError, match="the plan is for fp32, got precision 'tf32'"):
        run_circuit(np.ones(8, np.complex64), plan, precision="tf32")
    with pytest.raises(ValueError, match="state must be complex64 at fp32, got complex128"):
        run_circuit(np.ones(8, np.complex128), plan)
    with pytest.raises(ValueError, match=r"reference must have shape \(8,\), got \(4,\)"):
        run_circuit(np.ones(8, np.complex64), plan, reference=np.ones(4))
