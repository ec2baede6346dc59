"""Sequences of gates on a GPU: what their gates do one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import argand
import numpy as np
import pytest
from argand.device import gpu
from argand.gates import sequence_plan as plans
from argand.gates.canonical import GateForm, gate_form

from tests.kernels.gates.gate_cases import random_unitary

pytestmark = pytest.mark.gpu
TENSOR = [name for name, row in argand.PRECISIONS.items() if not row.exact_operands]


def forms_on(
    rng: np.random.Generator, qubits: int, chosen: Sequence[int], count: int
) -> list[GateForm]:
    """Random unitaries on one to four of these qubits, the last one under a control."""
    found = []
    for number in range(count):
        width = 1 + number % 4
        taken = [int(qubit) for qubit in rng.permutation(list(chosen))[:width]]
        found.append(gate_form(qubits, random_unitary(rng, width), taken))
    first, second = (int(qubit) for qubit in rng.permutation(list(chosen))[:2])
    return [*found, gate_form(qubits, np.eye(2)[::-1], [first], [second])]


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(
    ("qubits", "scale", "size"),
    [(12, 1.0, 12), (13, 1.0, 13), (15, 1e-20, 13), (20, 1.0, 12), (22, 1e20, 12), (23, 1.0, 13)],
)
def test_a_sequence_is_its_gates(
    cp: Any, rng: np.random.Generator, precision: str, qubits: int, scale: float, size: int
) -> None:
    """Within the sum of the gates' bounds; a tile may be of numbers of any size."""
    from argand.gates.gpu_sequence import PreparedSequence

    row = argand.PRECISIONS[precision]
    plan = plans.plan_sequence(row, gpu(0).require_arch(), size)
    if plan is None:
        pytest.skip(f"no sequences of {size} qubits at {precision}")
    chosen = sorted({*range(4), *map(int, rng.permutation(qubits)[:8])})
    forms = forms_on(rng, qubits, chosen, plan.gates - 1)
    state = rng.standard_normal((2**qubits, 2)).view(complex)[:, 0]
    state *= scale / np.linalg.norm(state)
    outside = [qubit for qubit in range(qubits) if qubit not in chosen][:2]
    for number, (inside, other) in enumerate([(0, chosen[4]), *((chosen[5], q) for q in outside)]):
        phase = gate_form(qubits, np.diag([1, np.exp(1j * (number + 1))]), [inside], [other])
        forms[3 * number : 3 * number] = [phase]
    found = cp.asarray(state.astype(np.complex64))
    PreparedSequence(qubits, forms, row, plans.completed_tile(qubits, chosen, size))(found)
    for form in forms:
        argand.apply_gate(state, form.matrix, form.targets, controls=form.controls)
    # Sums of 16 products of complex numbers whose operands and results are rounded, gate by gate.
    error = np.linalg.norm(found.get().astype(complex) - state) / scale
    assert error <= len(forms) * 8 * (row.u + 2.0**-24)
    assert error > 0


@pytest.mark.parametrize("precision", ["3xfp16", "fp16"])
@pytest.mark.parametrize(("count", "size"), [(1, 12), (2, 13), (5, 12)])
def test_numbers_of_a_tile_may_be_far_apart(
    cp: Any, rng: np.random.Generator, precision: str, count: int, size: int
) -> None:
    """The first gate scales each step of a warp by itself, further ones the tile."""
    from argand.gates.gpu_sequence import PreparedSequence

    row = argand.PRECISIONS[precision]
    forms = forms_on(rng, 14, range(size), count)[:count]
    state = rng.standard_normal((2**14, 2)).view(complex)[:, 0]
    state *= 2.0 ** rng.integers(-40, 1, state.size)
    state /= np.linalg.norm(state)
    found = cp.asarray(state.astype(np.complex64))
    PreparedSequence(14, forms, row, range(size))(found)
    for form in forms:
        argand.apply_gate(state, form.matrix, form.targets, controls=form.controls)
    error = np.linalg.norm(found.get().astype(complex) - state)
    assert 0 < error <= len(forms) * 8 * (row.u + 2.0**-24)


def test_values_that_are_not_finite_stay_in_their_tile(cp: Any, rng: np.random.Generator) -> None:
    from argand.gates.gpu_sequence import PreparedSequence

    forms = forms_on(rng, 14, range(12), 4)
    state = rng.standard_normal((2**14, 2)).view(complex)[:, 0].astype(np.complex64)
    clean, state = cp.asarray(state), cp.asarray(state)
    state[2**12 + 5] = np.nan
    sequence = PreparedSequence(14, forms, argand.PRECISIONS["3xfp16"], range(12))
    sequence(clean)
    sequence(state)
    finite = cp.isfinite(state.reshape(4, -1)).all(axis=1).tolist()
    assert finite == [True, False, True, True]
    assert (state.reshape(4, -1)[[0, 2, 3]] == clean.reshape(4, -1)[[0, 2, 3]]).all()
