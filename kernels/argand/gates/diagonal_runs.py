"""Gates in a row on two qubits that together are diagonal, as one gate. Needs no GPU.

Circuits of a few kinds of gates write a controlled phase as CX, phase, CX, and a CZ as H, CX, H.
Their gates keep their order with all others on these qubits; their product commutes with what is
diagonal there, and passes may take it as a phase (`argand.gates.phases`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from argand.gates.canonical import KEPT, gate_form
from argand.gates.fusion import fused_gate
from argand.gates.gate import UNITARY, Gate, diagonal_qubits
from argand.gates.sequence_plan import LOW_QUBITS

_MAX_QUBITS = 2
"""Qubits of a run."""
_MAX_GATES = 12
"""Gates of a run: a controlled rotation has six."""
_ROUNDING = 2.0**-50
"""Error of a product in fp64 relative to its largest entry: smaller entries off the diagonal count
as 0, and factors as close to 1 count as 1."""


@dataclass(frozen=True)
class GateRun:
    """Gates of a circuit in a row, as one.

    Attributes:
        gate: their product.
        numbers: their numbers in the circuit, ascending.
    """

    gate: Gate
    numbers: tuple[int, ...]


def diagonal_runs(qubits: int, gates: Sequence[Gate]) -> list[GateRun]:
    """Return a circuit's gates in order, those in a row that together are diagonal as one each."""
    found: dict[int, GateRun] = {}  # by the number of the last gate
    latest: list[list[int]] = [[] for _ in range(qubits)]  # the runs on each qubit
    for number, gate in enumerate(gates):
        found[number] = GateRun(gate, (number,))
        for qubit in gate.qubits:
            latest[qubit].append(number)
        members = _diagonal(found, latest, number)
        if members:
            own = [found.pop(one) for one in members]
            for qubit in {qubit for one in own for qubit in one.gate.qubits}:
                latest[qubit] = [one for one in latest[qubit] if one not in members]
            found[number] = _joined(qubits, own)
            for qubit in found[number].gate.qubits:
                latest[qubit].append(number)
    return [found[number] for number in sorted(found)]


def split_phases(runs: Sequence[GateRun]) -> list[GateRun]:
    """Return the same circuit, its diagonal gates on two qubits as controlled phases.

    Each becomes a controlled phase and a phase of each qubit; phases that follow each other are
    one. Passes need only one qubit of a controlled phase in their tile.
    """
    found: list[GateRun] = []
    phases: dict[int, int] = {}  # where the phase of a qubit is that commutes with all since
    for run in runs:
        factors = _phases_of(run.gate)
        if factors is None:
            changed = {*run.gate.qubits} - diagonal_qubits(run.gate)
            phases = {qubit: place for qubit, place in phases.items() if qubit not in changed}
            found.append(run)
            continue
        qubits, d = factors
        own = {qubits[0]: d[:2]}
        if len(qubits) == _MAX_QUBITS:
            own[qubits[1]] = np.array([1, d[2] / d[0]])
            mixed = np.array([1, d[3] * d[0] / (d[1] * d[2])])
            if not _is_one(mixed):
                found.append(GateRun(Gate(np.diag(mixed), qubits[:1], qubits[1:]), run.numbers))
        for qubit, factor in own.items():
            if _is_one(factor):
                continue
            if qubit not in phases:
                phases[qubit] = len(found)
                found.append(GateRun(Gate(np.diag(factor), (qubit,)), run.numbers))
                continue
            before = found[phases[qubit]]
            numbers = tuple(sorted({*before.numbers, *run.numbers}))
            found[phases[qubit]] = GateRun(
                Gate(before.gate.matrix @ np.diag(factor), (qubit,)), numbers
            )
    return found


def phases_beside_others(runs: Sequence[GateRun]) -> float:
    """Return how many gates on two qubits are diagonal, for each gate that is not."""
    found = [_phases_of(run.gate) for run in runs]
    phases = sum(one is not None and len(one[0]) == _MAX_QUBITS for one in found)
    return phases / max(1, sum(one is None for one in found))


def fewest_tiles(runs: Sequence[GateRun], size: int) -> int:
    """Return how few tiles of ``size`` qubits have all qubits that some gate changes.

    Each tile has the lowest qubits.
    """
    changed = {q for run in runs for q in {*run.gate.qubits} - diagonal_qubits(run.gate)}
    others = len(changed.difference(range(LOW_QUBITS)))
    return max(1, -(-others // (size - LOW_QUBITS)))


def _diagonal(found: Mapping[int, GateRun], latest: Sequence[list[int]], number: int) -> list[int]:
    """Return the numbers of the fewest runs in a row up to this one that together are diagonal.

    None where it is diagonal itself, or no such run ends there.
    """
    gate = found[number].gate
    own = {*gate.qubits}
    if len(own) > _MAX_QUBITS or own == diagonal_qubits(gate):
        return []
    pairs = [own]
    if len(own) < _MAX_QUBITS:
        before = [{*found[one].gate.qubits} for one in latest[gate.qubits[0]][-_MAX_GATES:]]
        nearest = next((one for one in reversed(before) if len(one) > 1), own)
        if len(nearest) == _MAX_QUBITS:  # a wider gate is in no run and ends each on its qubits
            pairs.append(nearest)
    for pair in pairs:
        members, product = [number], _on(gate, pair)
        left = {qubit: list(latest[qubit][-_MAX_GATES - 1 :]) for qubit in pair}
        for qubit in own:
            left[qubit].pop()
        while len(members) < _MAX_GATES and any(left.values()):
            one = max(places[-1] for places in left.values() if places)
            other = found[one].gate
            if not pair.issuperset(other.qubits):
                break
            for qubit in other.qubits:
                left[qubit].pop()
            members.append(one)
            product = product @ _on(other, pair)
            beside = np.abs(product - np.diag(np.diagonal(product))).max()
            if beside <= _ROUNDING * np.abs(product).max():
                return members[::-1]
    return []


def _on(gate: Gate, qubits: Collection[int]) -> Any:
    """Return the matrix of a gate on some qubits, ascending."""
    place = {qubit: index for index, qubit in enumerate(sorted(qubits))}
    data = np.asarray(gate.matrix, np.complex128).tobytes()
    targets = tuple(place[qubit] for qubit in gate.targets)
    controls = tuple(place[qubit] for qubit in gate.controls)
    return _matrix_on(len(place), data, targets, controls)


@lru_cache(maxsize=KEPT)
def _matrix_on(
    qubits: int, data: bytes, targets: tuple[int, ...], controls: tuple[int, ...]
) -> Any:
    order = 2 ** len(targets)
    gate = Gate(np.frombuffer(data, np.complex128).reshape(order, order), targets, controls)
    found = fused_gate([gate, Gate(np.eye(2**qubits), tuple(range(qubits)))], range(qubits)).matrix
    found.flags.writeable = False
    return found


def _joined(qubits: int, runs: Sequence[GateRun]) -> GateRun:
    """Return runs whose product is diagonal as one."""
    own = tuple(sorted({qubit for run in runs for qubit in run.gate.qubits}))
    factors = np.diagonal(fused_gate([run.gate for run in runs], own).matrix)
    factors = np.where(np.abs(factors - 1) <= _ROUNDING, 1, factors)
    form = gate_form(qubits, np.diag(factors), own)
    numbers = tuple(sorted(number for run in runs for number in run.numbers))
    return GateRun(Gate(form.matrix, form.targets, form.controls), numbers)


def _phases_of(gate: Gate) -> tuple[tuple[int, ...], Any] | None:
    """Return the qubits, ascending, and the factors of a unitary diagonal gate on one or two."""
    qubits = tuple(sorted(gate.qubits))
    if not 0 < len(qubits) <= _MAX_QUBITS or diagonal_qubits(gate) != {*qubits}:
        return None
    factors = np.diagonal(_on(gate, qubits))
    return (qubits, factors) if np.abs(np.abs(factors) - 1).max() <= UNITARY else None


def _is_one(factors: Any) -> bool:
    return bool(np.abs(factors - 1).max() <= _ROUNDING)
