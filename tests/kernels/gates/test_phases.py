"""Phases that share a pass over a state with other gates: their sets of qubits and tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand.gates.canonical import gate_form
from argand.gates.costs import SequenceCosts
from argand.gates.phases import in_rows, is_controlled_phase, is_phase, phase_tables


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
