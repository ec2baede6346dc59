"""Quantum circuits: OpenQASM 2 files and named circuits, and their fusion into wider gates.

Qubits are little-endian as in Qiskit: qubit 0 is the least significant bit of a basis state. This
module imports Qiskit, a quarter of a second: import it where a circuit is at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import qiskit.qasm2
from qiskit import QuantumCircuit
from qiskit.circuit import ControlFlowOp, Gate, Instruction
from qiskit.circuit.library import IGate
from qiskit.exceptions import QiskitError
from qiskit.quantum_info import Operator

from workflow.circuits.fused_gates import TargetedGate, fused, passes_of_width
from workflow.circuits.matrix_gates import instructions_of
from workflow.circuits.qasm3_program import control_in_words
from workflow.circuits.qasm_cost import parsable
from workflow.circuits.qasm_text import QasmError, parser_message
from workflow.circuits.resets import without_waits
from workflow.config.circuit import MAX_GATES, MAX_QUBITS, MAX_UPDATES, Circuit
from workflow.storage.files import absent, is_file
from workflow.storage.memory import in_words, machine_memory

Array = npt.NDArray[Any]
_ROUNDING = 1e-14
"""Entries of Qiskit's gate matrices that count as 0, at most."""
_WIDEST_KNOWN, _MAX_KNOWN = 6, 2000
"""Qubits, and number, of the different gates whose matrices a check reads."""
_INSTRUCTIONS = tuple(
    replace(one, constructor=lambda length: IGate(), builtin=True) if one.name == "u0" else one
    for one in qiskit.qasm2.LEGACY_CUSTOM_INSTRUCTIONS
)
"""Qiskit's own u0(n), a wait of n gates, is made of n identities, whatever n is."""


class CircuitError(ValueError):
    """A circuit that cannot be read, or holds what is not a unitary evolution."""


def circuit_of(given: Circuit, rng: np.random.Generator) -> QuantumCircuit:
    """Return the circuit that a config names; a random one has numbers of ``rng`` or its own seed.

    Raises CircuitError.
    """
    if given.file is not None:
        return load_circuit(given.file)
    if given.name is None or given.qubits is None:
        raise CircuitError("circuit must have either file or name")
    check_work(given.qubits, sum(named_widths(given.name, given.qubits, given.depth).values()))
    if given.seed is not None:
        rng = np.random.default_rng(given.seed)
    return named_circuit(given.name, given.qubits, given.depth, rng)


def load_circuit(path: Path) -> QuantumCircuit:
    """Return a circuit from an OpenQASM 2 file, with the gates that older Qiskit exporters assumed.

    Delays, and resets of qubits that are still |0>, are left out (`resets.without_waits`). Qiskit
    is given no path: neither the file's nor one to look for others. Raises CircuitError.
    """
    if not is_file(path):
        raise CircuitError(f"circuit.file: {absent(path)}")
    is_written = False
    try:
        given = parsable(path, {one.name: one.num_params for one in _INSTRUCTIONS})
        is_written = given.is_written
        _check_qubits(path, given.qubits)
        check_work(given.qubits, given.gates)
        known = [replace(one, builtin=one.builtin or one.name in given.opaque)
                 for one in _INSTRUCTIONS]  # fmt: skip
        found = qiskit.qasm2.loads(
            given.text,
            include_path=(),
            custom_instructions=(*known, *instructions_of(given.matrices)),
            custom_classical=qiskit.qasm2.LEGACY_CUSTOM_CLASSICAL,
        )
        found.metadata = {"registers": given.names, "said": given.said}
        return without_waits(found)
    except QasmError as error:
        raise CircuitError(f"circuit.file: {error}") from error
    except qiskit.qasm2.QASM2ParseError as error:
        said = parser_message(error.message, is_written=is_written)
        raise CircuitError(f"circuit.file: {path} {said}") from error


def _check_qubits(path: Path, qubits: int) -> None:
    if not 1 <= qubits <= MAX_QUBITS:
        raise CircuitError(
            f"circuit.file: {path} has {qubits} qubits; there must be 1 to {MAX_QUBITS}"
        )


def check_work(qubits: int, gates: int) -> None:
    """Raise CircuitError where a circuit would take too long, before any of it is built."""
    if gates > MAX_GATES:
        raise CircuitError(
            f"circuit: it has {gates} gates on {qubits} qubits; {MAX_GATES} gates are allowed"
        )
    if (updates := gates << qubits) > MAX_UPDATES:
        raise CircuitError(
            f"circuit: its {gates} gates on the 2^{qubits} amplitudes of {qubits} qubits are "
            f"{updates:.2g} updates; {MAX_UPDATES:.2g} are allowed, "
            f"{MAX_UPDATES >> qubits} gates on {qubits} qubits"
        )


def named_widths(name: str, qubits: int, depth: int) -> dict[int, int]:
    """Return how many gates of each number of qubits `named_circuit` makes."""
    if name == "qft":
        return {1: qubits, 2: qubits * (qubits - 1) // 2 + qubits // 2}
    if name == "ghz":
        return {1: 1, 2: qubits - 1}
    even, odd = (depth + 1) // 2, depth // 2  # layers whose pairs begin at qubit 0, at qubit 1
    return {1: qubits * depth, 2: even * (qubits // 2) + odd * ((qubits - 1) // 2)}


def named_circuit(name: str, qubits: int, depth: int, rng: np.random.Generator) -> QuantumCircuit:
    """Return a circuit by name.

    ``qft`` is the Fourier transform of the basis states with its final swaps, ``ghz`` makes
    (|0..0> + |1..1>) / sqrt 2, ``random`` has ``depth`` layers of a random rotation of every qubit
    and a controlled NOT on neighbouring pairs. Raises CircuitError for another name.
    """
    circuit = QuantumCircuit(qubits)
    if name == "qft":
        _append_qft(circuit)
    elif name == "ghz":
        circuit.h(0)
        for qubit in range(1, qubits):
            circuit.cx(qubit - 1, qubit)
    elif name == "random":
        _append_random_layers(circuit, depth, rng)
    else:
        raise CircuitError(f"circuit.name: there is no circuit {name!r}")
    return circuit


def _append_qft(circuit: QuantumCircuit) -> None:
    qubits = circuit.num_qubits
    for target in reversed(range(qubits)):
        circuit.h(target)
        for control in reversed(range(target)):
            circuit.cp(np.pi / 2 ** (target - control), control, target)
    for qubit in range(qubits // 2):
        circuit.swap(qubit, qubits - 1 - qubit)


def _append_random_layers(circuit: QuantumCircuit, depth: int, rng: np.random.Generator) -> None:
    for layer in range(depth):
        for qubit in range(circuit.num_qubits):
            circuit.u(*rng.uniform(0, 2 * np.pi, 3), qubit)
        for qubit in range(layer % 2, circuit.num_qubits - 1, 2):
            circuit.cx(qubit, qubit + 1)


def check_unitary(circuit: QuantumCircuit) -> None:
    """Raise CircuitError that names the first instruction which is not part of an evolution.

    Barriers are let through, and so are measurements that can wait until the end: those after which
    every gate leaves the measured bit as it is (a controlled gate on its control), because then
    measuring first or last gives the same outcomes (the principle of deferred measurement; Nielsen
    and Chuang, section 4.4). Any other gate after a measurement makes it mid-circuit.
    """
    measured: set[int] = set()
    keeping = _Keeping()
    for number, instruction in enumerate(circuit.data):
        operation = instruction.operation
        if operation.name == "barrier" or (not measured and isinstance(operation, Gate)):
            continue
        qubits = [circuit.find_bit(qubit).index for qubit in instruction.qubits]
        where = f"circuit: instruction {number} ({operation.name} on qubits {qubits})"
        if operation.name == "measure":
            measured |= set(qubits)
        elif isinstance(operation, ControlFlowOp):
            raise CircuitError(control_in_words(where, operation.name))
        elif not isinstance(operation, Gate):
            where += f" after others on qubit {qubits[0]}" * (operation.name == "reset")
            raise CircuitError(f"{where} is not a unitary gate")
        else:
            for position, qubit in enumerate(qubits):
                if qubit in measured:
                    keeping.check(operation, position, qubit, where)


class _Keeping:
    """Which gates keep which of their qubits as they are, each found out once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], bool] = {}

    def check(self, operation: Gate, position: int, qubit: int, where: str) -> None:
        """Raise CircuitError where a gate may change the measured qubit at a position of its own.

        ``where`` names the instruction.
        """
        key = operation.name, tuple(operation.params), position
        if key not in self._known:
            if operation.num_qubits > _WIDEST_KNOWN or len(self._known) >= _MAX_KNOWN:
                raise CircuitError(
                    f"{where} acts on the measured qubit {qubit}; whether it keeps it is known of "
                    f"{_MAX_KNOWN} gates of at most {_WIDEST_KNOWN} qubits"
                )
            self._known[key] = _keeps_bit(operation, position)
        if not self._known[key]:
            raise CircuitError(
                f"{where} changes qubit {qubit} after its measurement: a mid-circuit measurement "
                "is not a unitary evolution"
            )


def _keeps_bit(operation: Instruction, position: int) -> bool:
    """Return whether a gate never flips one of its qubits: no entry connects its 0 with its 1."""
    bit = (np.arange(2**operation.num_qubits) >> position) & 1
    return not np.any(np.abs(_matrix(operation)[bit[:, None] != bit]) > _ROUNDING)


def gates_of(circuit: QuantumCircuit, width: int) -> list[TargetedGate]:
    """Return the circuit's gates, those on more than ``width`` qubits decomposed by definition.

    Raises CircuitError where `check_unitary` does, for a gate without a matrix, and for one that is
    wider and cannot be taken apart.
    """
    check_unitary(circuit)
    return list(_gates(circuit, range(circuit.num_qubits), width))


def fuse(circuit: QuantumCircuit, width: int) -> list[TargetedGate]:
    """Return the circuit's gates, multiplied into gates of up to ``width`` ascending qubits.

    Which gates become one is `argand.gates.fusion.fuse`'s choice: few passes over the state, in any
    order that gates on common qubits allow.

    Raises CircuitError where `gates_of` does, and where this machine has no memory for them.
    """
    qubits, gates = circuit.num_qubits, gates_of(circuit, width)
    passes = passes_of_width(qubits, gates, width)
    check_matrices(len(passes), width, sum(16 * 4 ** len(one.qubits) for one in passes))
    return fused(gates, passes)


def check_matrices(gates: int, width: int, needed: int) -> None:
    """Raise CircuitError where this machine has no memory for the matrices of fused gates."""
    if needed > (there := machine_memory()):
        raise CircuitError(
            f"circuit: its {gates} gates, fused to at most {width} qubits, need "
            f"{in_words(needed)} of memory, this machine has {in_words(there)}; lower fuse"
        )


def _gates(circuit: QuantumCircuit, qubits: Sequence[int], width: int) -> Iterator[TargetedGate]:
    """Yield the gates of a circuit on these qubits, the ones that are too wide taken apart."""
    for instruction in circuit.data:
        operation = instruction.operation
        if operation.name in ("barrier", "measure"):
            continue
        targets = [qubits[circuit.find_bit(qubit).index] for qubit in instruction.qubits]
        if not targets:
            # A global phase: it belongs to no qubit, so it rides on the first.
            yield TargetedGate((qubits[0],), np.asarray(operation.to_matrix()) * np.eye(2))
        elif len(targets) <= width:
            yield TargetedGate(tuple(targets), _matrix(operation))
        else:
            yield from _taken_apart(operation, targets, width)
    if circuit.global_phase:
        yield TargetedGate((qubits[0],), np.exp(1j * float(circuit.global_phase)) * np.eye(2))


def _taken_apart(
    operation: Instruction, targets: Sequence[int], width: int
) -> Iterator[TargetedGate]:
    check_apart(operation, list(targets), width)
    yield from _gates(operation.definition, targets, width)


def check_apart(operation: Instruction, targets: Sequence[int], width: int) -> None:
    """Raise CircuitError for a gate that cannot be taken apart into gates on ``width`` qubits."""
    if width < 2 or operation.definition is None:
        least = 2 if operation.definition is not None else len(targets)
        raise CircuitError(
            f"fuse must be at least {least} for gate {operation.name} "
            f"on qubits {list(targets)}, got {width}"
        )


def _matrix(operation: Instruction) -> Array:
    try:
        return np.asarray(Operator(operation).data, np.complex128)
    except (QiskitError, TypeError, ValueError, ArithmeticError) as error:
        raise CircuitError(f"circuit: gate {operation.name} has no matrix: {error}") from error
