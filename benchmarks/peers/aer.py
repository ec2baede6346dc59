"""A peer: circuits by Qiskit Aer's state-vector simulator on the CPU, in single precision.

It runs beside ours on any device. A state comes from the host and goes back to it, in its time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import PRECISIONS, Device, Gate
from argand.device import is_cuda_array

from benchmarks.peers._peer import Candidate, CannotRunError, Peer

MAX_QUBITS = 24
"""Larger states take a CPU minutes a circuit."""


def require(qubits: int) -> None:
    """Raise CannotRunError where a state is too large for it."""
    if qubits > MAX_QUBITS:
        raise CannotRunError(f"Aer runs on the CPU: at most {MAX_QUBITS} qubits, got {qubits}")


def circuit_for(qubits: int, gates: Sequence[Gate], state: npt.NDArray[Any]) -> Any:
    """Return a Qiskit circuit that begins with a state of norm 1 and keeps its last one."""
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
    """Return a gate's matrix on its targets and then its controls, lowest bit first."""
    order = 2 ** len(gate.targets)
    whole = np.eye(order << len(gate.controls), dtype=np.complex128)
    whole[-order:, -order:] = gate.matrix
    return whole


def simulator() -> Any:
    """Return the simulator, which fuses gates by itself and takes every core."""
    from qiskit_aer import AerSimulator

    return AerSimulator(method="statevector", precision="single")


def run(simulation: Any, circuit: Any) -> npt.NDArray[Any]:
    """Return the state that a circuit ends with. Raises RuntimeError where Aer fails."""
    found = simulation.run(circuit, shots=1).result()
    if not found.success:
        raise RuntimeError(f"Aer failed: {found.status}")
    return np.asarray(found.data(0)["statevector"])


def _algorithm(_: str = "fp32") -> str:
    return f"on {len(os.sched_getaffinity(0))} CPU threads, fused by itself"


def _prepared(qubits: int, gates: Sequence[Gate], device: Device) -> list[Candidate]:
    """Return candidates for circuits: of a lone gate, copies to Aer and back would be timed."""
    if len(gates) == 1:
        return []

    def prepare(state: Any) -> tuple[Any, ...]:
        require(qubits)
        given = (state.get() if is_cuda_array(state) else state).astype(np.complex128)
        norm = np.linalg.norm(given)  # Aer takes states of norm 1 alone
        return circuit_for(qubits, gates, given / norm), simulator(), norm

    def compute(circuit: Any, simulation: Any, norm: float) -> Any:
        return run(simulation, circuit), norm

    def result(found: tuple[Any, float]) -> Any:
        state, norm = found
        scaled = (state * norm).astype(np.complex64)
        if device.backend == "cpu":
            return scaled
        import cupy

        return cupy.asarray(scaled)

    widths = tuple(len(gate.targets) + len(gate.controls) for gate in gates)
    return [
        Candidate("aer", PRECISIONS["fp32"], _algorithm(), prepare, compute, result, widths=widths)
    ]


PEER = Peer(
    name="aer", operation="gates", backends=("cpu", "cuda"), precisions=("fp32",),
    algorithm=_algorithm, modules=("qiskit_aer",), prepared=_prepared,
    hint="pip install qiskit-aer",
)  # fmt: skip
