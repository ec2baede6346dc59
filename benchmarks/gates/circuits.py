"""The circuits and gates that `benchmarks.gates` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Gate

Array = npt.NDArray[Any]


def random_unitary(rng: np.random.Generator, width: int) -> Array:
    """Return a unitary matrix on ``width`` qubits, from a QR decomposition of normal numbers."""
    normal = rng.standard_normal((2, 2**width, 2**width))
    return np.asarray(np.linalg.qr(normal[0] + 1j * normal[1])[0])


def placements(qubits: int, width: int, rng: np.random.Generator) -> dict[str, list[int]]:
    """Return a gate's targets: lowest, middle and highest qubits, spread evenly, and at random."""
    return {
        "low": list(range(width)),
        "mid": list(range((qubits - width + 1) // 2, (qubits - width + 1) // 2 + width)),
        "high": list(range(qubits - width, qubits)),
        "spread": [round(i * (qubits - 1) / max(1, width - 1)) for i in range(width)],
        "random": [int(qubit) for qubit in rng.permutation(qubits)[:width]],
    }


def qft(qubits: int, rng: np.random.Generator) -> list[Gate]:
    """Return the Fourier transform of the basis states, with its final swaps."""
    hadamard = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    swap = np.eye(4)[[0, 2, 1, 3]]
    gates = []
    for target in reversed(range(qubits)):
        gates.append(Gate(hadamard, (target,)))
        for control in reversed(range(target)):
            phase = np.diag([1, np.exp(1j * np.pi / 2 ** (target - control))])
            gates.append(Gate(phase, (target,), (control,)))
    return gates + [Gate(swap, (q, qubits - 1 - q)) for q in range(qubits // 2)]


def quantum_volume(qubits: int, rng: np.random.Generator) -> list[Gate]:
    """Return a quantum-volume circuit: ``qubits`` layers of pairs (Cross and others, 2019)."""
    gates = []
    for _ in range(qubits):
        order = [int(qubit) for qubit in rng.permutation(qubits)]
        pairs = zip(order[::2], order[1::2], strict=False)  # of an odd number one is left
        gates += [Gate(random_unitary(rng, 2), pair) for pair in pairs]
    return gates


def random_gates(qubits: int, rng: np.random.Generator) -> list[Gate]:
    """Return 400 random unitaries, each on one qubit or two."""
    gates = []
    for _ in range(400):
        width = int(rng.integers(1, 3)) if qubits > 1 else 1
        targets = tuple(int(qubit) for qubit in rng.permutation(qubits)[:width])
        gates.append(Gate(random_unitary(rng, width), targets))
    return gates


CIRCUITS: Mapping[str, Callable[[int, np.random.Generator], list[Gate]]] = {
    "qft": qft, "quantum-volume": quantum_volume, "random-400": random_gates,
}  # fmt: skip
