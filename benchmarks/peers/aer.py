"""Qiskit Aer beside our circuits: its state-vector simulator on the CPU, in single precision."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Gate

from benchmarks.harness.measuring import CannotRunError

MOST_QUBITS = 24
"""Larger states take a CPU minutes a circuit."""


def require(qubits: int) -> None:
    """Raise CannotRunError where Aer is not installed, or a state is too large for it."""
    if qubits > MOST_QUBITS:
        raise CannotRunError(f"Aer runs on the CPU: at most {MOST_QUBITS} qubits, got {qubits}")
    try:
        import qiskit_aer  # noqa: F401
    except ImportError as error:
        raise CannotRunError(f"Aer is not installed (pip install qiskit-aer): {error}") from error


def circuit_for(qubits: int, gates: Sequence[Gate], state: npt.NDArray[Any]) -> Any:
    """A circuit of Qiskit that begins with a state of norm 1 and keeps the one it ends with."""
    from qiskit import QuantumCircuit
    from qiskit.circuit.library import UnitaryGate
    from qiskit_aer import library

    circuit = QuantumCircuit(qubits)
    circuit.append(library.SetStatevector(state), range(qubits))
    for gate in gates:
        operation = UnitaryGate(full_matrix(gate), check_input=False)
        circuit.append(operation, [*gate.targets, *gate.controls])
    circuit.append(library.SaveStatevector(qubits), range(qubits))
    return circuit


def full_matrix(gate: Gate) -> npt.NDArray[Any]:
    """A gate's matrix on its targets and then its controls, lowest bit first."""
    order = 2 ** len(gate.targets)
    whole = np.eye(order << len(gate.controls), dtype=np.complex128)
    whole[-order:, -order:] = gate.matrix
    return whole


def simulator() -> Any:
    """The simulator, which fuses gates by itself and takes every core."""
    from qiskit_aer import AerSimulator

    return AerSimulator(method="statevector", precision="single")


def run(simulation: Any, circuit: Any) -> npt.NDArray[Any]:
    """The state that a circuit ends with. Raises RuntimeError where Aer fails."""
    found = simulation.run(circuit, shots=1).result()
    if not found.success:
        raise RuntimeError(f"Aer failed: {found.status}")
    return np.asarray(found.data(0)["statevector"])


def described() -> str:
    """What it runs on."""
    return f"on {len(os.sched_getaffinity(0))} CPU threads, fused by itself"
