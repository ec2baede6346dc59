"""A circuit with noise after each gate, as one value. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argand.gates.gate import Gate
from argand.precision import Precision


@dataclass(frozen=True)
class NoisyCircuit:
    """A circuit with noise, and the seed that all of its trajectories share.

    Attributes:
        qubits: of the state.
        gates: in order.
        seed: of the random numbers, from 0 to 2^64 - 1.
        depolarising, damping: probabilities per gate and qubit.
        precision: of the products of gates.
    """

    qubits: int
    gates: Sequence[Gate]
    seed: int
    depolarising: float
    damping: float
    precision: Precision

    def __post_init__(self) -> None:
        """Raise ValueError for what is out of range, TypeError for what is no gate."""
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"seed must be from 0 to 2^64 - 1, got {self.seed}")
        for name, probability in (("depolarising", self.depolarising), ("damping", self.damping)):
            if not 0 <= probability <= 1:
                raise ValueError(f"{name} must be a probability from 0 to 1, got {probability}")
        for gate in self.gates:
            if not isinstance(gate, Gate):
                raise TypeError(f"gates must be argand.Gate, got {gate!r}")
            # The larger state of a batch may have qubits that a trajectory lacks.
            if not all(0 <= qubit < self.qubits for qubit in gate.qubits):
                raise ValueError(
                    f"qubits of a gate must be from 0 to {self.qubits - 1}, got {list(gate.qubits)}"
                )
