"""A circuit with noise after each gate, as one value. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from argand.gates.canonical import KEPT_WIDTH
from argand.gates.gate import UNITARY, Gate, is_unitary
from argand.precision import Precision


@dataclass(frozen=True)
class NoisyCircuit:
    """A circuit with noise, and the seed that all of its trajectories share.

    Attributes:
        qubits: qubits of the state.
        gates: the gates in order.
        seed: the seed of the random numbers, from 0 to 2^64 - 1.
        depolarising, damping: probabilities per gate and qubit.
        precision: the precision of the products of gates.
    """

    qubits: int
    gates: Sequence[Gate]
    seed: int
    depolarising: float
    damping: float
    precision: Precision

    def __post_init__(self) -> None:
        """Raise ValueError for what is out of range."""
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"seed must be from 0 to 2^64 - 1, got {self.seed}")
        for name, probability in (("depolarising", self.depolarising), ("damping", self.damping)):
            if not 0 <= probability <= 1:
                raise ValueError(f"{name} must be a probability from 0 to 1, got {probability}")
        for gate in self.gates:
            # The larger state of a batch may have qubits that a trajectory lacks.
            if not all(0 <= qubit < self.qubits for qubit in gate.qubits):
                raise ValueError(
                    f"qubits of a gate must be from 0 to {self.qubits - 1}, got {list(gate.qubits)}"
                )
            _check_unitary(gate)


def _check_unitary(gate: Gate) -> None:
    """Raise ValueError for a matrix of few qubits in host memory that is not unitary.

    The probability of a jump is that of a state of norm 1.
    """
    if len(gate.targets) > KEPT_WIDTH or not isinstance(gate.matrix, np.ndarray | list | tuple):
        return
    matrix, order = np.asarray(gate.matrix), 2 ** len(gate.targets)
    numbers = matrix.dtype.kind in "biufc"  # what else is wrong the first gate says
    if numbers and matrix.shape == (order, order) and not is_unitary(matrix):
        raise ValueError(
            f"gates with noise must be unitary, U^H U = I within {UNITARY:g}; that on targets "
            f"{list(gate.targets)} is not"
        )
