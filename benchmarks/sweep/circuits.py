"""Circuits of drawn kind, size and depth on states of drawn size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Gate, Precision, plan_circuit
from argand.gates.canonical import gate_form
from argand.gates.fusion import checked_gates
from argand.gates.prepared_gates import prepared_gates

from benchmarks.gates import check as gates_check
from benchmarks.gates.circuits import random_unitary
from benchmarks.gates.ours import ours
from benchmarks.peers import Candidate, candidates
from benchmarks.sweep.case import Assess, Case

_PRECISION = "3xfp16"
_GATES = 50, 200
"""Fewest and most gates of a circuit."""


class CircuitCase(Case):
    """One circuit on a whole state. Peers are libraries, and ours gate by gate."""

    in_place = True

    def __init__(self, qubits: int, kind: str, gates: Sequence[Gate]) -> None:
        self._qubits, self._gates = qubits, list(gates)
        self.operation, self.kind = "gates", kind
        self.shape = f"{qubits} qubits, {len(gates)} gates"
        self.flops = sum(8 * 2.0 ** (qubits + len(gate.targets)) for gate in gates)
        self.bytes_moved = 16 * 2.0**qubits

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return a random state of norm 1."""
        return (gates_check.random_state(self._qubits, device, seed),)

    def ours(self, device: Device) -> list[Candidate]:
        """Return the planned circuit."""
        plan = plan_circuit(self._qubits, self._gates, precision=_PRECISION, device=device)
        return [ours(PRECISIONS[_PRECISION], plan, self._gates)]

    def peers(self, device: Device) -> list[Candidate]:
        """Return the libraries' circuits, and ours gate by gate."""
        libraries = candidates(
            "gates", device.backend, qubits=self._qubits, gates=self._gates, device=device
        )
        return [*libraries, self._unfused()]

    def _unfused(self) -> Candidate:
        row = PRECISIONS[_PRECISION]
        gates = checked_gates(self._qubits, self._gates)
        forms = [gate_form(self._qubits, g.matrix, g.targets, g.controls) for g in gates]

        def compute(state: Any, apply: Callable[[Any], None]) -> Any:
            apply(state)
            return state

        return Candidate(
            "unfused", row, "ours, gate by gate",
            lambda state: (state.copy(), prepared_gates(state, forms, row)), compute,
            widths=tuple(form.width for form in forms),
        )  # fmt: skip

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares the whole state with fp64."""
        exact = cache(partial(gates_check.evolved, operands[0], self._gates))
        return partial(gates_check.check, operands[0], self._gates, device.backend, exact=exact)

    def peer_class(self, precision: Precision) -> str:
        """Return fp32's: cuStateVec has no other, and 3xfp16 is of its accuracy."""
        return "fp32" if precision.name in ("fp32", "3xfp16") else precision.peer_class


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 8 to 28 qubits and 50 to 200 gates, of three kinds with equal probability.

    Random gates on any one qubit or two; layers of gates on neighbours; layers of rotations with
    controlled phases between any two.
    """
    kinds = {"any pairs": _any_pairs, "neighbours": _neighbours, "phases": _phases}
    found: list[Case] = []
    for number in range(cases):
        qubits = int(rng.integers(8, 29))
        count = int(sizes(rng, *_GATES, (1,))[0])
        kind = [*kinds][number % len(kinds)]
        found.append(CircuitCase(qubits, kind, kinds[kind](rng, qubits, count)))
    return found


def _any_pairs(rng: np.random.Generator, qubits: int, count: int) -> list[Gate]:
    found = []
    for _ in range(count):
        width = int(rng.integers(1, 3))
        targets = tuple(int(qubit) for qubit in rng.permutation(qubits)[:width])
        found.append(Gate(random_unitary(rng, width), targets))
    return found


def _neighbours(rng: np.random.Generator, qubits: int, count: int) -> list[Gate]:
    found: list[Gate] = []
    layer = 0
    while len(found) < count:
        pairs = [(low, low + 1) for low in range(layer % 2, qubits - 1, 2)]
        found += [Gate(random_unitary(rng, 2), pair) for pair in pairs]
        layer += 1
    return found[:count]


def _phases(rng: np.random.Generator, qubits: int, count: int) -> list[Gate]:
    found: list[Gate] = []
    while len(found) < count:
        found += [Gate(random_unitary(rng, 1), (qubit,)) for qubit in range(qubits)]
        for _ in range(2 * qubits):
            one, other = (int(qubit) for qubit in rng.permutation(qubits)[:2])
            phase = np.diag([1, np.exp(2j * np.pi * rng.random())])
            found.append(Gate(phase, (one,), (other,)))
    return found[:count]
