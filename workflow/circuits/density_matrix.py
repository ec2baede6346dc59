"""Density matrices of noisy circuits in complex128 by NumPy, to verify trajectories against.

Written from the channels' definitions (Nielsen and Chuang, "Quantum Computation and Quantum
Information", 8.3), without argand. A matrix of n qubits has an axis of length 2 for each qubit of
its rows, the highest first, then of its columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from workflow.circuits.fused_gates import TargetedGate

Array = npt.NDArray[np.complex128]

MAX_QUBITS = 10
"""16 MiB of a density matrix; each gate reads it several times."""
_I, _X, _Y, _Z = (
    np.array(rows, np.complex128)
    for rows in ([[1, 0], [0, 1]], [[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]])
)


def channel(depolarising: float, damping: float) -> Array:
    """Return the superoperator (4, 4) of both channels on one qubit, on (row bit, column bit)."""
    weights = (1 - 0.75 * depolarising, *[depolarising / 4] * 3)
    mixed = [np.sqrt(w) * one for w, one in zip(weights, (_I, _X, _Y, _Z), strict=True)]
    kept = np.diag([1, np.sqrt(1 - damping)]).astype(np.complex128)
    jump = np.array([[0, np.sqrt(damping)], [0, 0]], np.complex128)
    return np.asarray(_superoperator([kept, jump]) @ _superoperator(mixed))


def _superoperator(kraus: Sequence[Array]) -> Array:
    return np.asarray(sum(np.kron(one, one.conj()) for one in kraus))


def noisy_density(
    qubits: int, gates: Sequence[TargetedGate], depolarising: float, damping: float
) -> Array:
    """Return the density matrix (2^n, 2^n) of |0...0> after gates with noise on their qubits."""
    rho = np.zeros((2,) * (2 * qubits), np.complex128)
    rho[(0,) * (2 * qubits)] = 1
    both = channel(depolarising, damping)
    for gate in gates:
        rows = [qubits - 1 - target for target in reversed(gate.targets)]
        rho = _applied(rho, gate.matrix, rows)
        rho = _applied(rho, gate.matrix.conj(), [qubits + row for row in rows])
        for target in gate.targets:
            row = qubits - 1 - target
            rho = _applied(rho, both, [row, qubits + row])
    return rho.reshape(2**qubits, 2**qubits)


def pure_state(qubits: int, gates: Sequence[TargetedGate]) -> Array:
    """Return the state (2^n,) of |0...0> after gates without noise."""
    state = np.zeros((2,) * qubits, np.complex128)
    state[(0,) * qubits] = 1
    for gate in gates:
        axes = [qubits - 1 - target for target in reversed(gate.targets)]
        state = _applied(state, gate.matrix, axes)
    return state.reshape(-1)


def _applied(tensor: Array, matrix: Array, axes: Sequence[int]) -> Array:
    """Return a matrix on some axes, the most significant first."""
    count = len(axes)
    shaped = matrix.reshape((2,) * (2 * count))
    product = np.tensordot(shaped, tensor, (range(count, 2 * count), axes))
    return np.ascontiguousarray(np.moveaxis(product, range(count), axes))


def expectation(rho: Array, strings: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return tr(rho P) of each Pauli string, the highest qubit's letter first."""
    letters = {"I": _I, "X": _X, "Y": _Y, "Z": _Z}
    found = []
    for string in strings:
        tensor, left = rho.reshape((2,) * (2 * len(string))), len(string)
        for letter in string:
            # The highest qubit left: its row and its column are traced with the letter.
            tensor = np.tensordot(letters[letter], tensor, ((1, 0), (0, left)))
            left -= 1
        found.append(float(np.real(tensor)))
    return np.array(found)


def marginals(rho: Array, qubits: Sequence[int]) -> npt.NDArray[np.float64]:
    """Return the probabilities of some qubits' values: bit j of an outcome is that of qubits[j]."""
    numbers = np.arange(len(rho))
    outcomes = sum(((numbers >> q & 1) << bit for bit, q in enumerate(qubits)), numbers & 0)
    found = np.bincount(outcomes, np.diagonal(rho).real, minlength=1 << len(qubits))
    return found.astype(np.float64)
