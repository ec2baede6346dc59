"""Gates whose matrix is a CuPy array: the host neither fetches it nor waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, apply_gate

from tests.kernels.gates.gate_cases import dense_gate, gate_bound, random_state, random_unitary
from tests.kernels.gates.test_gpu_gates import KERNELS, QUBITS

pytestmark = pytest.mark.gpu


def check(cp: Any, state: Any, matrix: Any, targets: Sequence[int]) -> None:
    """Compare every amplitude with fp64."""
    found = cp.asarray(state.astype("complex64"))
    expected = dense_gate(found, matrix, targets)
    apply_gate(found, cp.asarray(matrix), targets)
    bound = gate_bound(PRECISIONS["3xfp16"], len(targets))
    assert float(cp.linalg.norm(found - expected)) <= bound


@pytest.mark.parametrize(("precision", "width"), KERNELS)
def test_the_bits_are_those_of_the_same_matrix_on_the_host(
    cp: Any, rng: np.random.Generator, precision: str, width: int
) -> None:
    """A matrix without zeros, whose form has nothing to find; targets in any order."""
    kind = PRECISIONS[precision].output
    for number, scale in enumerate((1.0, 3e4, 1e-30)):
        targets = [int(x) for x in rng.permutation(QUBITS)[: width + 1]]
        control, state = targets.pop(), random_state(rng, QUBITS).astype(kind)
        matrix = scale * random_unitary(rng, width)
        given = matrix if number else matrix.astype("complex64")
        for on_gpu in (cp.asarray(given), cp.asarray(given).T.copy().T, cp.asarray(given)):
            found = cp.asarray(state)
            apply_gate(found, on_gpu, targets, controls=[control], precision=precision)
            expected = cp.asarray(state)
            apply_gate(expected, given, targets, controls=[control], precision=precision)
            assert found.get().tobytes() == expected.get().tobytes()


@pytest.mark.parametrize("width", [1, 3, 5, 6, 7])
def test_sparse_matrices_are_products(cp: Any, rng: np.random.Generator, width: int) -> None:
    matrix = np.eye(2**width)[rng.permutation(2**width)]
    matrix[0] *= 0.5
    check(cp, random_state(rng, QUBITS), matrix + 0j, range(2, 2 + width))
    check(cp, random_state(rng, 8), matrix + 0j, range(width))


def test_the_matrix_may_change_between_calls(cp: Any, rng: np.random.Generator) -> None:
    """This holds where several calls became one graph, and without waiting for the matrix."""
    held = cp.empty((32, 32), cp.complex64)
    state, expected = (cp.asarray(random_state(rng, QUBITS).astype("complex64")) for _ in range(2))
    expected[...] = state
    for _ in range(6):
        matrix = random_unitary(rng, 5).astype("complex64")
        held[...] = cp.asarray(matrix)
        apply_gate(state, held, range(5, 10))
        apply_gate(expected, matrix, range(5, 10))
    assert state.get().tobytes() == expected.get().tobytes()


def test_a_matrix_within_the_state(cp: Any, rng: np.random.Generator) -> None:
    state = cp.asarray(random_state(rng, QUBITS).astype("complex64"))
    matrix, expected = state[:16].reshape(4, 4), state.copy()
    apply_gate(expected, matrix.get(), (3, 9))
    apply_gate(state, matrix, (3, 9))
    assert state.get().tobytes() == expected.get().tobytes()


def test_states_that_begin_within_a_chunk(cp: Any, rng: np.random.Generator) -> None:
    memory = cp.zeros(2**QUBITS + 1, cp.complex64)
    memory[1:] = cp.asarray(random_state(rng, QUBITS))
    expected, matrix = memory[1:].copy(), cp.asarray(random_unitary(rng, 2))
    for _ in range(2):
        apply_gate(memory[1:], matrix, (0, 4))
        apply_gate(expected, matrix, (0, 4))
    assert bool((memory[1:] == expected).all())


def test_wide_and_real_matrices(cp: Any, rng: np.random.Generator) -> None:
    check(cp, random_state(rng, QUBITS), random_unitary(rng, 8), range(8))
    check(cp, random_state(rng, QUBITS), np.linalg.qr(rng.normal(size=(8, 8)))[0], (1, 4, 7))


def test_wrong_matrices_are_refused(cp: Any, rng: np.random.Generator) -> None:
    state = cp.asarray(random_state(rng, QUBITS).astype("complex64"))
    with pytest.raises(ValueError, match=r"matrix must have shape \(4, 4\) for 2 targets"):
        apply_gate(state, cp.eye(2), (0, 1))
    with pytest.raises(ValueError, match="must be different qubits"):
        apply_gate(state, cp.eye(4), (0, 0))
    with pytest.raises(ValueError, match="targets must be qubits from 0"):
        apply_gate(state, cp.eye(2), (QUBITS,))
