"""The size of a circuit before its matrices are made: gates, qubits, their bytes when staged.

A named circuit's gates are counted by a formula. A file's circuit is built without matrices, and
read once as long as the file stays as it is.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from argand.gates.plan import MAX_WIDTH
from qiskit import QuantumCircuit
from qiskit.circuit import Gate, Instruction
from qiskit.circuit.library import get_standard_gate_name_mapping

from workflow.circuits import qiskit_circuits
from workflow.circuits.fused_gates import passes_of_width
from workflow.circuits.qiskit_circuits import CircuitError
from workflow.circuits.registers import acted_on_after, acted_on_measured, registers_of
from workflow.circuits.resets import first_resets
from workflow.config.circuit import Circuit
from workflow.storage.files import is_file

_COMPLEX_BYTES = 16
_SMALL_BYTES = 256 << 20
"""Up to here it is not worth while to know how many fused gates there will be."""
_PLANNED_GATES = 1000
"""Gates that are fused to estimate how many passes a circuit needs: a twentieth of a second."""


@dataclass(frozen=True)
class CircuitSize:
    """The qubits of a circuit, its gates, and how many gates of each width are staged.

    ``staged`` maps a number of qubits to a number of gates: each gate of the circuit, or an upper
    bound or (of a long circuit) an estimate of those that they are fused to. ``registers`` are
    those of a file's circuit (`workflow.circuits.registers`), ``resets`` the qubits with whose
    resets it begins, ``acted_on_after`` those on which gates act behind their last measurement,
    ``acted_on_measured`` behind any.
    """

    qubits: int
    gates: int
    staged: Mapping[int, int]
    registers: Mapping[str, Any] = field(default_factory=dict, compare=False)
    resets: tuple[int, ...] = ()
    acted_on_after: tuple[int, ...] = ()
    acted_on_measured: tuple[int, ...] = ()

    @property
    def matrix_entries(self) -> int:
        """Complex numbers in all matrices."""
        return sum(count << (2 * width) for width, count in self.staged.items())

    @property
    def matrix_bytes(self) -> int:
        """Bytes of all matrices in complex128."""
        return _COMPLEX_BYTES * self.matrix_entries


def size_of(given: Circuit, fuse: int | None) -> CircuitSize:
    """Return the size of a config's circuit, its gates fused to ``fuse`` qubits or one by one.

    Raises CircuitError where the circuit is too large, or is not a unitary evolution.
    """
    if given.file is None:
        # The random numbers of a circuit change no width.
        depth = given.depth if given.name == "random" else 1
        return _size_by_name(str(given.name), given.qubits or 0, depth, fuse)
    if not is_file(given.file):
        qiskit_circuits.load_circuit(given.file)  # says so
    status = given.file.stat()
    state = status.st_ino, status.st_size, status.st_mtime_ns
    return _size_by_file(given.file, state, fuse)


@lru_cache(maxsize=4096)
def _size_by_name(name: str, qubits: int, depth: int, fuse: int | None) -> CircuitSize:
    widths = qiskit_circuits.named_widths(name, qubits, depth)
    gates = sum(widths.values())
    qiskit_circuits.check_work(qubits, gates)
    if fuse is None:
        return CircuitSize(qubits, gates, widths)
    if fuse < 2 and widths.get(2):
        gate = "cp" if name == "qft" else "cx"
        raise CircuitError(f"fuse must be at least 2 for gate {gate} of {name}, got {fuse}")
    bound = CircuitSize(qubits, gates, {fuse: gates})
    if bound.matrix_bytes <= _SMALL_BYTES:
        return bound
    layers = min(depth, max(2, math.ceil(_PLANNED_GATES / max(1, gates // depth))))
    return CircuitSize(qubits, gates, {fuse: _scaled(_plan(name, qubits, layers, fuse), gates)})


@lru_cache(maxsize=4096)
def _plan(name: str, qubits: int, layers: int, fuse: int) -> tuple[int, int]:
    """Return `_planned` of a named circuit, which is the same however much longer that is."""
    part = qiskit_circuits.named_circuit(name, qubits, layers, np.random.default_rng(0))
    return _planned(part, fuse)


@lru_cache(maxsize=256)
def _size_by_file(path: Path, state: tuple[int, int, int], fuse: int | None) -> CircuitSize:
    """Return the size of a file's circuit; ``state`` changes when the file does."""
    circuit = qiskit_circuits.load_circuit(path)
    qiskit_circuits.check_unitary(circuit)
    widths = Counter(_widths(circuit, MAX_WIDTH if fuse is None else fuse, set()))
    gates, qubits = sum(widths.values()), circuit.num_qubits
    acted_on = acted_on_after(circuit), acted_on_measured(circuit)
    of_file = registers_of(circuit), first_resets(circuit), *acted_on
    if fuse is None:
        return CircuitSize(qubits, gates, dict(widths), *of_file)
    bound = CircuitSize(qubits, gates, {fuse: gates}, *of_file)
    if bound.matrix_bytes <= _SMALL_BYTES:
        return bound
    part = circuit.copy_empty_like()
    for instruction in itertools.islice(circuit.data, _PLANNED_GATES):
        part.append(instruction)
    return CircuitSize(qubits, gates, {fuse: _scaled(_planned(part, fuse), gates)}, *of_file)


def _planned(part: QuantumCircuit, fuse: int) -> tuple[int, int]:
    """Return how many passes the gates of a circuit are fused to, and how many gates they are."""
    gates = qiskit_circuits.gates_of(part, fuse)
    return len(passes_of_width(part.num_qubits, gates, fuse)), len(gates)


def _scaled(planned: tuple[int, int], gates: int) -> int:
    """Estimate the passes of all gates from those that the first gates need."""
    passes, beginning = planned
    return math.ceil(passes * max(1.0, gates / max(1, beginning)))


def _widths(circuit: QuantumCircuit, width: int, known: set[str]) -> Iterator[int]:
    """Yield the qubits of each gate, those on more than ``width`` taken apart by their definition.

    ``known`` are names of gates that have a matrix. Raises CircuitError for one that has none, and
    for one that cannot be taken apart.
    """
    for instruction in circuit.data:
        operation = instruction.operation
        if operation.name in ("barrier", "measure"):
            continue
        if operation.num_qubits > width:
            targets = [circuit.find_bit(qubit).index for qubit in instruction.qubits]
            qiskit_circuits.check_apart(operation, targets, width)
            yield from _widths(operation.definition, width, known)
            continue
        _check_matrix(operation, known)
        yield max(1, operation.num_qubits)
    if circuit.global_phase:
        yield 1


def _check_matrix(operation: Instruction, known: set[str]) -> None:
    """Raise CircuitError for a gate that nobody defined, or at a parameter that is not a number.

    Gates of Qiskit's library have a matrix by themselves, those of a file by their definition,
    which is read once.
    """
    wrong = [float(value) for value in operation.params if not math.isfinite(value)]
    if wrong:
        raise CircuitError(
            f"circuit: gate {operation.name} has no matrix: its parameters must be finite, "
            f"got {wrong[0]}"
        )
    if operation.name in known:
        return
    if not hasattr(operation, "__array__"):
        raise CircuitError(f"circuit: gate {operation.name} has no matrix: it is not defined")
    if operation.base_class not in _LIBRARY and operation.definition is not None:
        for inner in operation.definition.data:
            if isinstance(inner.operation, Gate):
                _check_matrix(inner.operation, known)
    known.add(operation.name)


_LIBRARY = frozenset(type(gate) for gate in get_standard_gate_name_mapping().values())
