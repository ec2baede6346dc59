"""States, qubits and Pauli strings as the calls of readout take them, checked. Needs no GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from argand.checks import as_integer, as_real, in_order, refuse_misaligned
from argand.device import is_cuda_array

STATE_TYPES = ("complex64", "complex128")
MAX_SHOTS = 2**31 - 1
Observable: TypeAlias = str | tuple[str, float] | Mapping[str, Any]
"""A Pauli string, one with its coefficient, or a mapping that has both."""


@dataclass(frozen=True)
class Pauli:
    """A Pauli string as masks over basis states: P|i> = i^ys (-1)^parity(i & signs) |i ^ flips>.

    Attributes:
        flips: bits of the qubits with X or Y.
        signs: bits of the qubits with Y or Z.
        ys: how many qubits have Y.
        coefficient: what its expectation value is multiplied by.
    """

    flips: int
    signs: int
    ys: int
    coefficient: float = 1.0


def state_qubits(state: Any) -> int:
    """Return the number of qubits of a state.

    Raises TypeError for what is not an array of complex64 or complex128, ValueError for what is not
    a contiguous vector of 2^n amplitudes.
    """
    if not isinstance(state, np.ndarray) and not is_cuda_array(state):
        raise TypeError(f"state must be a NumPy or a CuPy array, got {type(state).__name__}")
    if str(state.dtype) not in STATE_TYPES:
        raise TypeError(f"state must be complex64 or complex128, got {state.dtype}")
    if state.ndim != 1 or not state.flags.c_contiguous:
        raise ValueError(f"state must be a contiguous vector, got shape {state.shape}")
    if state.size < 2 or state.size & (state.size - 1):
        raise ValueError(f"state must have 2^n amplitudes with n at least 1, got {state.size}")
    refuse_misaligned("state", state)
    return int(state.size).bit_length() - 1


def chosen_qubits(chosen: Sequence[int], qubits: int) -> tuple[int, ...]:
    """Return qubits as integers.

    Raises ValueError where they are not different ones of a state, TypeError for no sequence.
    """
    found = tuple(as_integer(qubit, "a qubit") for qubit in in_order(chosen, "qubits"))
    if len(set(found)) != len(found) or not all(0 <= qubit < qubits for qubit in found):
        raise ValueError(f"qubits must be different ones from 0 to {qubits - 1}, got {list(found)}")
    return found


def parse_pauli(observable: Any, qubits: int) -> Pauli:
    """Return a Pauli string as masks: its first letter is the highest qubit's, as in Qiskit.

    Args:
        observable: "ZZI", or ("ZZI", coefficient), or {"pauli": "ZZI", "coefficient": 0.5}.
        qubits: qubits of the state.

    Raises ValueError for other letters, another length, or a coefficient that is not finite.
    """
    letters, coefficient = _parts(observable)
    if not isinstance(letters, str) or set(letters) - set("IXYZ"):
        raise ValueError(f"a Pauli string has the letters I, X, Y and Z, got {letters!r}")
    if len(letters) != qubits:
        raise ValueError(
            f"the Pauli string {letters!r} has {len(letters)} letters, but the state has "
            f"{qubits} qubits: give a letter for each, the highest qubit's first"
        )
    if not np.isfinite(coefficient):
        raise ValueError(f"the coefficient of {letters!r} must be finite, got {coefficient}")
    return Pauli(_mask(letters, "XY"), _mask(letters, "YZ"), letters.count("Y"), coefficient)


def _parts(observable: Any) -> tuple[Any, float]:
    if isinstance(observable, str):
        return observable, 1.0
    if isinstance(observable, Mapping):
        if not {"pauli"} <= set(observable) <= {"pauli", "coefficient"}:
            raise ValueError(
                f"an observable has the keys pauli and coefficient, got {sorted(observable)}"
            )
        return observable["pauli"], _coefficient(observable.get("coefficient", 1.0))
    try:
        letters, coefficient = observable
    except (TypeError, ValueError):
        letters = coefficient = None
    if not isinstance(letters, str):
        raise ValueError(
            "an observable must be a Pauli string or a pair of one and its coefficient, "
            f"got {observable!r}"
        )
    return letters, _coefficient(coefficient)


def _coefficient(value: Any) -> float:
    """Return a coefficient; Qiskit's are complex numbers with an imaginary part of zero."""
    if isinstance(value, complex | np.complexfloating) and value.imag == 0:
        value = value.real
    return as_real(value, "coefficient")


def _mask(letters: str, among: str) -> int:
    return sum(1 << bit for bit, letter in enumerate(reversed(letters)) if letter in among)


def by_flips(paulis: Sequence[Pauli]) -> dict[int, list[int]]:
    """Return the indices of the strings that flip the same qubits, which share their products."""
    groups: dict[int, list[int]] = {}
    for number, pauli in enumerate(paulis):
        groups.setdefault(pauli.flips, []).append(number)
    return groups
