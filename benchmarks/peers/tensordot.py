"""A peer: gates by the lines that a user of NumPy or CuPy writes, tensordot on an axis a qubit."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Gate

from benchmarks.peers._peer import Candidate, CannotRunError, Peer
from benchmarks.peers.aer import full_matrix

MAX_QUBITS = 26
"""Each gate takes three states of memory."""


def require(qubits: int) -> None:
    """Raise CannotRunError where a state is too large for it."""
    if qubits > MAX_QUBITS:
        raise CannotRunError(f"tensordot takes at most {MAX_QUBITS} qubits, got {qubits}")


def evolve(arrays: Any, state: Any, gates: Sequence[tuple[Any, Sequence[int]]]) -> Any:
    """Return the state after gates, tensors with two axes a qubit, on axes of the state."""
    psi = state
    for tensor, axes in gates:
        width = len(axes)
        psi = arrays.tensordot(tensor, psi, axes=(range(width, 2 * width), axes))
        psi = arrays.moveaxis(psi, range(width), axes)
    return arrays.ascontiguousarray(psi).reshape(-1)


def _prepared(qubits: int, gates: Sequence[Gate], device: Device) -> list[Candidate]:
    """Return the candidates for circuits: gates by themselves are measured beside libraries."""
    if len(gates) == 1:
        return []
    arrays = np if device.backend == "cpu" else import_module("cupy")

    def prepare(state: Any) -> tuple[Any, ...]:
        require(qubits)
        ready = []
        for gate in gates:
            order = [*gate.targets, *gate.controls]
            tensor = full_matrix(gate).astype(np.complex64).reshape((2,) * 2 * len(order))
            axes = [qubits - 1 - qubit for qubit in reversed(order)]
            ready.append((arrays.asarray(tensor), axes))
        return state.reshape((2,) * qubits), ready

    return [
        Candidate(
            "tensordot", PRECISIONS["fp32"], _algorithm(), prepare,
            lambda state, ready: evolve(arrays, state, ready),
            widths=tuple(len(gate.targets) + len(gate.controls) for gate in gates),
        )
    ]  # fmt: skip


def _algorithm(_: str = "fp32") -> str:
    return "an axis a qubit, gate by gate"


PEER = Peer(
    name="tensordot", operation="gates", backends=("cpu", "cuda"), precisions=("fp32",),
    algorithm=_algorithm, modules=("numpy",), prepared=_prepared,
)  # fmt: skip
