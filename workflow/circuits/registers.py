"""Registers of a circuit, and its classical bits at each outcome, as Qiskit's counts write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workflow.data import Array, Coordinate, Staged, blank, is_blank

if TYPE_CHECKING:
    from qiskit import QuantumCircuit
    from qiskit.circuit import Register

_NAMELESS = "(without a name)"
MAX_OUTCOMES = 1 << 20
"""Outcomes beside which classical bits stand: each is a text of four bytes a bit."""


def registers_of(circuit: QuantumCircuit) -> dict[str, Any]:
    """Return names and sizes of registers, and the qubit that each classical bit is measured of.

    They are attributes of what is staged: ``registers`` of qubits, where there are several, and
    ``classical_registers`` and ``measured`` where something is measured. A bit has the qubit that
    is measured into it last, -1 where none is.
    """
    found: dict[str, Any] = {}
    if len(circuit.qregs) > 1:
        found["registers"] = _named(circuit, circuit.qregs)
    measured = [-1] * circuit.num_clbits
    for one in circuit.data:
        if one.operation.name == "measure":
            measured[circuit.find_bit(one.clbits[0]).index] = circuit.find_bit(one.qubits[0]).index
    if any(qubit >= 0 for qubit in measured):
        found |= {
            "measured": measured,
            "classical_registers": _named(circuit, circuit.cregs),
        }
    return found


def acted_on_after(circuit: QuantumCircuit) -> tuple[int, ...]:
    """Return the qubits on which gates act between their last measurement into a bit and the end.

    Without noise such gates keep the qubit (`qiskit_circuits.check_unitary`), and it is the bit.
    """
    bits_of: dict[int, set[int]] = {}
    qubit_of: dict[int, int] = {}
    changed: set[int] = set()  # bits
    for one in circuit.data:
        if one.operation.name == "measure":
            bit, qubit = (circuit.find_bit(x[0]).index for x in (one.clbits, one.qubits))
            bits_of.get(qubit_of.get(bit, -1), set()).discard(bit)
            bits_of.setdefault(qubit, set()).add(bit)
            qubit_of[bit] = qubit
            changed.discard(bit)
        elif qubit_of and one.operation.name != "barrier":
            for qubit in one.qubits:
                changed |= bits_of.get(circuit.find_bit(qubit).index, set())
    return tuple(sorted({qubit_of[bit] for bit in changed}))


def acted_on_measured(circuit: QuantumCircuit) -> tuple[int, ...]:
    """Return the qubits on which gates act after a measurement of them.

    Such gates leave the measured values as they are (`qiskit_circuits.check_unitary`), so the
    measurement changes no probability and no expectation value but of X or Y there: it is 0 then.
    """
    measured: set[int] = set()
    changed: set[int] = set()
    for one in circuit.data:
        qubits = {circuit.find_bit(qubit).index for qubit in one.qubits}
        if one.operation.name == "measure":
            measured |= qubits
        elif measured and one.operation.name != "barrier":
            changed |= qubits & measured
    return tuple(sorted(changed))


def qubits_of(staged: Staged) -> int:
    """Return the qubits of a staged state."""
    return int(staged.operands["state"].size).bit_length() - 1


def _named(circuit: QuantumCircuit, registers: Iterable[Register]) -> list[list[Any]]:
    """Return the name and the size of each register, by the names of a file in another form."""
    own = (circuit.metadata or {}).get("registers", {})
    return [[own.get(one.name, one.name), one.size] for one in registers]


def named_qubits(attributes: Mapping[str, Any]) -> str:
    """Return which qubits each register has, for a label; "" where there is one register."""
    parts, first = [], 0
    for name, size in attributes.get("registers", ()):
        if size:
            last = first + size - 1
            places = f"{first}" if size == 1 else f"{first} to {last}"
            parts.append(f"{name} {places}".lstrip())
            first += size
    return f": {', '.join(parts)}" if parts else ""


def classical_bits(attributes: Mapping[str, Any], outcomes: Array) -> Coordinate | None:
    """Return the classical bits at basis states (outcome,), the highest first.

    Registers are apart by a space, the last first; bits into which nothing is measured are 0. It is
    None where nothing is measured, and for more than `MAX_OUTCOMES`.
    """
    measured = attributes.get("measured")
    if measured is None or len(outcomes) > MAX_OUTCOMES:
        return None
    sizes = [size for _, size in attributes["classical_registers"]]
    own = [name for name, _ in reversed(attributes["classical_registers"])]
    names = " ".join(name or _NAMELESS for name in own) if any(own) else ""
    said = f"classical bits {names}".rstrip() + ", the highest first"
    spaces = {sum(sizes[:n]) - 1 for n in range(1, len(sizes)) if sizes[n] and sum(sizes[:n])}
    width = len(measured) + len(spaces)
    if is_blank(outcomes):
        return Coordinate(blank((len(outcomes),), np.dtype(f"U{width}")), "", said, ("outcome",))
    columns = []
    for bit in reversed(range(len(measured))):
        if bit in spaces:
            columns.append(np.full(len(outcomes), ord(" "), np.uint32))
        of = measured[bit]
        one = (outcomes >> of) & 1 if of >= 0 else np.zeros(len(outcomes), np.int64)
        columns.append((ord("0") + one).astype(np.uint32))
    texts = np.ascontiguousarray(np.stack(columns, axis=1)).view(f"U{width}")[:, 0]
    return Coordinate(texts, "", said, ("outcome",))
