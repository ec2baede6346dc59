"""A circuit that is planned and prepared once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import Gate, PreparedCircuit, plan_circuit, run_circuit
from argand.device import gpu
from argand.gates.costs import GateCosts, SequenceCosts
from argand.precision import get_precision
from argand.runtime.plans.plan_files import with_digest

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


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_matrix_that_changes_later_changes_no_circuit(
    rng: np.random.Generator, width: int, is_shared: bool
) -> None:
    """Of another plan neither: a matrix is read-only to one of its views, and another writes."""
    matrix = random_unitary(rng, width)
    writer = matrix[:]
    matrix.flags.writeable = not is_shared
    gate = Gate(matrix, tuple(range(width)))
    plan, state = plan_circuit(QUBITS, [gate]), random_state(rng, QUBITS).astype("complex64")
    prepared, expected, other = PreparedCircuit(plan, state), state.copy(), state.copy()
    run_circuit(expected, plan)
    writer[...] = np.eye(2**width)
    run_circuit(other, plan)
    np.testing.assert_array_equal(other, expected)
    np.testing.assert_array_equal(prepared(state), expected)


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


def test_it_is_saved_and_loaded(rng: np.random.Generator, tmp_path: Path) -> None:
    """With gates of one pass each and with some that share one."""
    state = random_state(rng, 13).astype("complex64")
    gates = [*circuit(rng), *(Gate(random_unitary(rng, 2), (k, k + 1)) for k in range(11))]
    flat = GateCosts(1e9, ((1.0, 1.0),) * 7, 0.0, measured=True)
    shared = replace(flat, sequences=(SequenceCosts(12, (1.0,) * 8),))
    for costs in (flat, shared):
        plan = plan_circuit(13, gates, costs=costs, width=np.int64(4))
        prepared, expected = PreparedCircuit(plan, state), state.copy()
        prepared(expected)
        prepared.save(tmp_path / "circuit.json")
        loaded = PreparedCircuit.load(tmp_path / "circuit.json", state)
        assert loaded.describe() == prepared.describe()
        assert loaded.plan.groups == plan.groups
        assert (max(group.count for group in plan.groups) > 1) == (costs is shared)
        np.testing.assert_array_equal(loaded(state.copy()), expected)


def test_a_rounding_is_kept_in_the_file(rng: np.random.Generator, tmp_path: Path) -> None:
    state, path = random_state(rng, QUBITS).astype("complex64"), tmp_path / "circuit.json"
    precision = get_precision("tf32", "toward_zero")
    prepared = PreparedCircuit(plan_circuit(QUBITS, circuit(rng), precision=precision), state)
    prepared.save(path)
    loaded = PreparedCircuit.load(path, state)
    assert loaded.plan.precision == precision
    np.testing.assert_array_equal(loaded(state.copy()), prepared(state.copy()))
    found = json.loads(path.read_text())
    del found["rounding"]
    path.write_text(json.dumps(with_digest(found)))
    with pytest.raises(ValueError, match="has no rounding, as of an earlier version"):
        PreparedCircuit.load(path, state)


DAMAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a matrix that is cut": lambda found: found["gates"][0].update(matrix="AAAA"),
    "a qubit that is none": lambda found: found["gates"][0].update(targets=[77]),
    "a pass too few": lambda found: found["groups"].pop(),
    "a tile outside": lambda found: found["groups"].__setitem__(0, [1, [99]]),
    "no gates": lambda found: found.pop("gates"),
    "of something else": lambda found: found.update(operation="dft"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_refused(name: str, rng: np.random.Generator, tmp_path: Path) -> None:
    state, path = random_state(rng, QUBITS).astype("complex64"), tmp_path / "circuit.json"
    PreparedCircuit(plan_circuit(QUBITS, circuit(rng)), state).save(path)
    found = json.loads(path.read_text())
    DAMAGES[name](found)
    path.write_text(json.dumps(with_digest(found)))
    with pytest.raises(ValueError, match=r"is damaged|is a plan of 'dft'"):
        PreparedCircuit.load(path, state)


def test_a_changed_matrix_is_refused(rng: np.random.Generator, tmp_path: Path) -> None:
    state, path = random_state(rng, QUBITS).astype("complex64"), tmp_path / "circuit.json"
    PreparedCircuit(plan_circuit(QUBITS, circuit(rng)), state).save(path)
    found = json.loads(path.read_text())
    matrix = found["gates"][0]["matrix"]
    found["gates"][0]["matrix"] = ("A" if matrix[0] != "A" else "B") + matrix[1:]
    path.write_text(json.dumps(found))
    with pytest.raises(ValueError, match="is damaged: its content does not match"):
        PreparedCircuit.load(path, state)


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


def beside(precision: str) -> GateCosts:
    """Costs by which gates of up to four qubits share passes, as tensor cores apply them."""
    flat = GateCosts(1e9, ((1.0, 1.0),) * 7, 0.0, measured=True)
    shares = precision not in ("fp32", "fp64")
    return replace(flat, sequences=(SequenceCosts(12, (1.0,) * 8),)) if shares else flat


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "tf32", "3xtf32", "fp16"])
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("widest", [2, 8])
def test_a_graph_writes_to_no_memory_of_others(
    cp: Any, rng: np.random.Generator, precision: str, shift: int, widest: int
) -> None:
    """A state that begins within 16 bytes is copied, and gates of 8 qubits are products."""
    gates = [*circuit(rng), *(Gate(random_unitary(rng, 2), (k, k + 1)) for k in range(11))]
    gates += [Gate(random_unitary(rng, widest), tuple(range(2, 2 + widest)))]
    plan = plan_circuit(
        14, gates, precision=precision, device=gpu(cp.cuda.Device().id), costs=beside(precision)
    )
    given = cp.asarray(random_state(rng, 15).astype("complex64"))
    state, begun, expected = (
        x[shift : shift + (1 << 14)] for x in (given, given.copy(), given.copy())
    )
    prepared = PreparedCircuit(plan, state)
    prepared(expected)
    with cp.cuda.Stream(non_blocking=True) as stream:
        cp.cuda.Device().synchronize()
        stream.begin_capture()
        prepared(state)
        graph = stream.end_capture()
        # What the capture gave back would be theirs.
        others = [cp.full(1 << size, 3, cp.uint8) for size in range(9, 22) for _ in range(8)]
        for _ in range(2):
            state[...] = begun
            graph.launch(stream=stream)
        stream.synchronize()
        assert bool((state == expected).all())
        assert all(bool((x == 3).all()) for x in others)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "tf32", "3xtf32"])
def test_running_a_circuit_in_a_capture_is_refused(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """The capture goes on, without what was refused."""
    state = cp.asarray(random_state(rng, QUBITS).astype("complex64"))
    device = gpu(cp.cuda.Device().id)
    plan = plan_circuit(
        QUBITS, circuit(rng), precision=precision, device=device, costs=beside(precision)
    )
    prepared = PreparedCircuit(plan, state)
    expected = prepared(state.copy())
    with cp.cuda.Stream(non_blocking=True) as stream:
        cp.cuda.Device().synchronize()
        stream.begin_capture()
        for gates in (plan, circuit(rng)):
            with pytest.raises(RuntimeError, match=r"make an argand\.PreparedCircuit"):
                run_circuit(state, gates)
        prepared(state)
        graph = stream.end_capture()
        graph.launch(stream=stream)
        stream.synchronize()
    assert bool((state == expected).all())
