"""Trajectories of noisy circuits against density matrices."""

from __future__ import annotations

from typing import Any

import argand
import numpy as np
import pytest
from argand import Gate
from argand.gates import trajectories

H = np.array([[1, 1], [1, -1]]) / 2**0.5
X, Y, Z = (np.array(one) for one in ([[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]))
T = np.diag([1, np.exp(0.25j * np.pi)])
CIRCUIT = [Gate(H, (0,)), Gate(X, (1,), (0,)), Gate(T, (1,)), Gate(H, (1,)), Gate(X, (0,))]
NOISE = {"depolarising": 0.1, "damping": 0.2}
MANY = 20_000


def on_qubit(matrix: Any, qubit: int) -> Any:
    return np.kron(matrix, np.eye(2)) if qubit else np.kron(np.eye(2), matrix)


def through(rho: Any, kraus: list[Any]) -> Any:
    return sum(k @ rho @ k.conj().T for k in kraus)


def density(depolarising: float, damping: float) -> Any:
    """The density matrix of the circuit of two qubits, channel by channel."""
    rho = np.diag([1, 0, 0, 0]).astype(complex)
    for gate in CIRCUIT:
        matrix = on_qubit(gate.matrix, gate.targets[0])
        if gate.controls:
            matrix = np.eye(4)[[0, 3, 2, 1]]  # qubit 0 controls, qubit 1 changes
        rho = through(rho, [matrix])
        for qubit in gate.qubits:
            weights = [1 - 0.75 * depolarising, *[depolarising / 4] * 3]
            paulis = zip(weights, (np.eye(2), X, Y, Z), strict=True)
            rho = through(rho, [np.sqrt(w) * on_qubit(one, qubit) for w, one in paulis])
            kept = np.diag([1, np.sqrt(1 - damping)])
            jump = np.array([[0, np.sqrt(damping)], [0, 0]])
            rho = through(rho, [on_qubit(kept, qubit), on_qubit(jump, qubit)])
    return rho


def mean(**noise: float) -> Any:
    states = argand.run_trajectories(2, CIRCUIT, MANY, seed=4, **noise)
    return np.einsum("ti,tj->ij", states, states.conj()) / MANY


@pytest.mark.parametrize("noise", [{"depolarising": 0.1}, {"damping": 0.2}, NOISE])
def test_trajectories_average_to_the_density_matrix(noise: dict[str, float]) -> None:
    """By Hoeffding, 32 parts in [-1, 1] are all this near but with a probability of 1e-9."""
    near = np.sqrt(2 * np.log(64e9) / MANY)
    apart = mean(**noise) - density(noise.get("depolarising", 0), noise.get("damping", 0))
    assert np.abs([apart.real, apart.imag]).max() <= near
    other = mean(**noise) - density(0.9, 0.0)
    assert np.abs([other.real, other.imag]).max() > near


def test_without_noise_every_trajectory_is_the_state() -> None:
    states = argand.run_trajectories(2, CIRCUIT, 5, seed=0)
    state = np.eye(1, 4, dtype=complex)[0]
    for gate in CIRCUIT:
        argand.apply_gate(state, gate.matrix, gate.targets, controls=gate.controls)
    np.testing.assert_allclose(states, np.tile(state, (5, 1)), atol=1e-15)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_qubits_may_be_integers_of_eight_bits(kind: Any) -> None:
    """2^8 is none of them."""
    x = [[0, 1], [1, 0]]
    given = [argand.Gate(x, (8,)), argand.Gate(x, (0,), (8,))]
    same = [argand.Gate(x, (kind(8),)), argand.Gate(x, (0,), (kind(8),))]
    found = [argand.run_trajectories(9, gates, 4, seed=1, **NOISE) for gates in (given, same)]
    np.testing.assert_array_equal(*found)


def test_gates_may_be_tuples() -> None:
    given = [(gate.matrix, list(gate.targets), gate.controls) for gate in CIRCUIT]
    found = argand.run_trajectories(2, given, 5, seed=3, **NOISE)
    np.testing.assert_array_equal(found, argand.run_trajectories(2, CIRCUIT, 5, seed=3, **NOISE))


@pytest.mark.parametrize("precision", ["fp64", "fp32", "3xfp16"])
def test_trajectories_keep_their_norm_and_their_numbers(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def states(count: int) -> Any:
        return argand.run_trajectories(2, CIRCUIT, count, seed=1, precision=precision, **NOISE)

    many = states(37)
    # Fewer than 32 roundings of each of 5 gates and 6 channels move a norm.
    u = 2.0 * argand.PRECISIONS[precision].u
    assert np.abs(np.linalg.norm(many, axis=1) - 1).max() <= 32 * 11 * u
    monkeypatch.setattr(trajectories, "_BATCH_QUBITS", 3)
    np.testing.assert_allclose(states(11), many[:11], atol=32 * 11 * u)
    assert np.abs(many[1:] - many[:-1]).max() > 0.1
    last = argand.run_trajectories(2, CIRCUIT, 6, seed=1, precision=precision, first=31, **NOISE)
    np.testing.assert_allclose(last, many[31:], atol=32 * 11 * u)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"qubits": 0}, "qubits must be from 1 to 26"),
        ({"trajectories": 0}, "trajectories must be at least 1"),
        ({"seed": -1}, "seed must be from 0"),
        ({"first": -1}, "first must be from 0 to .* less the trajectories, got -1"),
        ({"first": 2**63 - 1}, "first must be from 0 to .* less the trajectories"),
        ({"depolarising": 1.5}, "depolarising must be a probability"),
        ({"damping": np.nan}, "damping must be a probability"),
        ({"qubits": 1}, "qubits of a gate must be from 0 to 0"),
        ({"gates": [argand.Gate([[1, 1], [1, -1]], (1,))]}, r"unitary, .* that on targets \[1\]"),
    ],
)
def test_mistakes_are_refused(changes: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"qubits": 2, "gates": CIRCUIT, "trajectories": 3, "seed": 0, **changes}
    with pytest.raises(ValueError, match=said):
        argand.run_trajectories(**given)
