"""A circuit that is planned and prepared once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import Gate, PreparedCircuit, plan_circuit, run_circuit

from tests.kernels.gates.gate_cases import random_state, random_unitary

QUBITS = 6


def circuit(rng: np.random.Generator) -> list[Gate]:
    return [
        Gate(random_unitary(rng, 2), (0, 3)), Gate(np.array([[0, 1], [1, 0]]), (5,), (2,)),
        Gate(random_unitary(rng, 1), (4,)),
    ]  # fmt: skip


def test_it_gives_what_running_the_plan_gives(rng: np.random.Generator) -> None:
    plan, state = plan_circuit(QUBITS, circuit(rng)), random_state(rng, QUBITS).astype("complex64")
    expected, other = state.copy(), random_state(rng, QUBITS).astype("complex64")
    run_circuit(expected, plan)
    prepared = PreparedCircuit(plan, other)
    assert prepared(state) is state
    np.testing.assert_array_equal(state, expected)
    assert prepared.describe() == plan.listing()


def test_other_states_are_refused(rng: np.random.Generator) -> None:
    plan, state = plan_circuit(QUBITS, circuit(rng)), random_state(rng, QUBITS).astype("complex64")
    with pytest.raises(ValueError, match="for 6 qubits, the state has 5"):
        PreparedCircuit(plan, state[:32])
    with pytest.raises(ValueError, match="state must be complex64"):
        PreparedCircuit(plan, state.astype(complex))
    prepared = PreparedCircuit(plan, state)
    for wrong in (state[:32], state.astype(complex), np.repeat(state, 2)[::2]):
        with pytest.raises(ValueError, match="state must be a contiguous"):
            prepared(wrong)


@pytest.mark.gpu
def test_a_graph_replays_a_circuit(cp: Any, rng: np.random.Generator) -> None:
    gates = circuit(rng)
    state, expected = (cp.asarray(random_state(rng, 15).astype("complex64")) for _ in range(2))
    expected[...] = state
    plan = plan_circuit(15, gates, width=3)
    prepared = PreparedCircuit(plan, state)
    for _ in range(3):
        run_circuit(expected, plan)
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        prepared(state)
        graph = stream.end_capture()
        for _ in range(3):
            graph.launch(stream=stream)
    stream.synchronize()
    assert bool((state == expected).all())
