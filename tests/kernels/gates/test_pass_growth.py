"""Passes that grow by qubits: what they take depends on their qubits, and is the most there is."""

from __future__ import annotations

import numpy as np
import pytest
from argand import Gate
from argand.gates.gate import Dependencies
from argand.gates.pass_growth import GrowingPass, grow

QUBITS = 10
X = np.array([[0, 1], [1, 0]])


def drawn(seed: int) -> tuple[Dependencies, list[float], GrowingPass]:
    """A circuit of CX and controlled phases, of which the latter need one of their qubits."""
    rng = np.random.default_rng(seed)
    gates, phases = [], []
    for number in range(60):
        a, b = (int(qubit) for qubit in rng.permutation(QUBITS)[:2])
        if rng.integers(2):
            phases.append(number)
        matrix = np.diag([1, 1j]) if number in phases else X
        gates.append(Gate(matrix, (a,), (b,)))
    dependencies = Dependencies(QUBITS, gates)
    dependencies.controlled_phases = frozenset(phases)
    weights = [0.125 if number in phases else 1.0 for number in range(len(gates))]
    ready = [number for number, count in enumerate(dependencies.counts) if count == 0]
    return dependencies, weights, GrowingPass(0, [], {}, ready, 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_what_grew_from_other_gates_is_not_grown_again(seed: int) -> None:
    dependencies, weights, state = drawn(seed)
    known: dict[int, int] = {}
    each: dict[int, frozenset[int]] = {}
    together: dict[int, frozenset[int]] = {}
    alone = shared = 0
    for first in sorted(state.ready):
        mask = dependencies.masks[first]
        apart = grow(state, mask, 5, dependencies, weights, 1, {})
        once = grow(state, mask, 5, dependencies, weights, 1, known)
        alone, shared = alone + len(apart), shared + len(once)
        for one in apart:
            assert each.setdefault(one.mask, frozenset(one.taken)) == frozenset(one.taken)
        together |= {one.mask: frozenset(one.taken) for one in once}
    assert together == each
    assert shared < alone


@pytest.mark.parametrize("seed", range(4))
def test_a_pass_grows_by_what_brings_most(seed: int) -> None:
    """One step adds those qubits, of the ones that waiting gates lack, which bring most."""
    dependencies, weights, state = drawn(seed)
    for first in sorted(state.ready):
        begun = state.grown(dependencies.masks[first], dependencies, weights)
        width = begun.mask.bit_count() + 1
        lacking = {dependencies.masks[number] & ~begun.mask for number in begun.ready}
        ways = [more for more in lacking if more.bit_count() == 1]
        weighed = [begun.grown(more, dependencies, weights).weight for more in ways]
        (found,) = grow(state, begun.mask, width, dependencies, weights, 0, {})
        assert found.weight == max(weighed, default=begun.weight)
