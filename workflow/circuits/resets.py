"""Delays, which a circuit's result does not depend on, and resets with which a circuit begins.

OpenQASM 3's own examples begin with resets, whose qubits are |0> then; schedules have delays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workflow.files.input_error import InputError

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

    from workflow.config.statevector_case import StatevectorCase

_KEY = "resets"
_DELAY = re.compile(r"delay(_\d+)?")
"""Names of delays; Qiskit writes those of another length with a number, as opaque gates."""


def without_waits(circuit: QuantumCircuit) -> QuantumCircuit:
    """Return a circuit without its delays and the resets of qubits on which nothing acts before.

    These leave |0> as it is; `first_resets` are their qubits. A gate that the file defines under
    such a name stays.
    """
    if not any(name == "reset" or _DELAY.fullmatch(name) for name in circuit.count_ops()):
        return circuit
    touched: set[int] = set()
    resets: set[int] = set()
    kept = []
    for one in circuit.data:
        qubits = {circuit.find_bit(qubit).index for qubit in one.qubits}
        if one.operation.name == "reset" and not qubits & touched:
            resets |= qubits
            continue
        if _DELAY.fullmatch(one.operation.name) and one.operation.definition is None:
            continue
        if one.operation.name != "barrier":
            touched |= qubits
        kept.append(one)
    found = circuit.copy_empty_like()
    found.data = kept
    found.metadata = {**(circuit.metadata or {}), _KEY: sorted(resets)}
    return found


def first_resets(circuit: QuantumCircuit) -> tuple[int, ...]:
    """Return the qubits whose resets `without_waits` has left out, ascending."""
    return tuple((circuit.metadata or {}).get(_KEY, ()))


def check_resets(resets: Sequence[int], case: StatevectorCase) -> None:
    """Raise InputError where a circuit that begins with resets is given another state than |0>."""
    if resets and (case.input is not None or case.initial != "zero"):
        key = "initial" if case.input is None else "input.state"
        raise InputError(
            f"{key}: the circuit begins with resets of qubits {list(resets)}, which are no unitary "
            "evolution of a state that is not |0...0>"
        )
