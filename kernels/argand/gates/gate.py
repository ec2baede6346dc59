"""Gates of a circuit, and which of them have to keep their order. Needs no GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from argand.checks import refuse_masked
from argand.gates.canonical import KEPT, KEPT_WIDTH, changed_bits
from argand.gemm.pack.packed import Operand

UNITARY = 1e-3
"""Largest deviation of U^H U of a unitary gate from the identity, in an element."""


@dataclass(frozen=True, eq=False, init=False)
class Gate:
    """A gate of a circuit; arguments as in `argand.apply_gate`.

    A writeable NumPy array as the matrix is copied, so that one array may be filled for each gate
    in turn. Matrices of other kinds must keep their values as long as the gate is used.
    """

    matrix: Any
    targets: tuple[int, ...]
    controls: tuple[int, ...]

    def __init__(self, matrix: Any, targets: Sequence[int], controls: Sequence[int] = ()) -> None:
        """Refuse a matrix with masked elements, and qubits that are no sequences."""
        refuse_masked("matrix", matrix)
        qubits = ordered_qubits(targets, controls)
        if isinstance(matrix, np.ndarray) and matrix.flags.writeable:
            matrix = matrix.copy()
            matrix.flags.writeable = False
        for name, value in zip(("matrix", "targets", "controls"), (matrix, *qubits), strict=True):
            object.__setattr__(self, name, value)

    @property
    def qubits(self) -> tuple[int, ...]:
        """Targets and controls."""
        return self.targets + self.controls


GateLike: TypeAlias = (
    Gate | tuple[Operand, Sequence[int]] | tuple[Operand, Sequence[int], Sequence[int]]
)
"""A gate of a circuit: an object, or its matrix, targets and controls."""


def is_unitary(matrix: np.ndarray[Any, Any]) -> bool:
    """Return whether a matrix (n, n) of NumPy is unitary within `UNITARY`."""
    return _is_unitary(matrix.astype(np.complex128).tobytes(), len(matrix))


@lru_cache(maxsize=KEPT)
def _is_unitary(data: bytes, order: int) -> bool:
    matrix = np.frombuffer(data, np.complex128).reshape(order, order)
    return bool(np.abs(matrix.conj().T @ matrix - np.eye(order)).max() <= UNITARY)


def ordered_qubits(
    targets: Iterable[int], controls: Iterable[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return targets and controls in their order.

    Raises TypeError where they are no sequences, such as targets that are a set, which has no
    order.
    """
    if not isinstance(targets, Set | Mapping):
        with suppress(TypeError):
            return tuple(targets), tuple(controls)
    raise TypeError(
        f"targets and controls must be sequences of qubits, got {targets!r} and {controls!r}"
    )


def as_gates(given: Any) -> Iterator[Gate]:
    """Yield gates of what a circuit may be given as. Raises TypeError for what is no gate."""
    if isinstance(given, Gate) or not isinstance(given, Iterable):
        raise TypeError(f"gates must be a sequence of gates, got {given!r}")
    for number, one in enumerate(given):
        if isinstance(one, Gate):
            yield one
        elif isinstance(one, tuple | list) and len(one) in (2, 3):
            yield Gate(*one)
        else:
            raise TypeError(
                f"gate {number} must be an argand.Gate, or a tuple of matrix, targets and maybe "
                f"controls, got {one!r}"
            )


class Dependencies:
    """The order that a circuit's gates have to keep.

    Attributes:
        masks: the qubits of each gate as bits; a search may widen those of gates that are to stay
            alone.
        own_masks: its qubits as bits.
        controlled_phases: the gates that need only one of their qubits in a pass
            (`argand.gates.phases`).
        followers: the gates that wait for each gate.
        counts: the number of gates that each gate waits for.
    """

    def __init__(self, qubits: int, gates: Sequence[Gate]) -> None:
        self.own_masks = [sum(1 << qubit for qubit in gate.qubits) for gate in gates]
        self.masks = list(self.own_masks)
        self.controlled_phases: frozenset[int] = frozenset()
        self.followers: list[list[int]] = [[] for _ in gates]
        self.counts = [0] * len(gates)
        last = [-1] * qubits  # the latest gate that is not diagonal there
        since: list[list[int]] = [[] for _ in range(qubits)]  # and those that are, after it
        for number, gate in enumerate(gates):
            before: set[int] = set()
            diagonal = diagonal_qubits(gate)
            for qubit in gate.qubits:
                before.add(last[qubit])
                if qubit in diagonal:
                    since[qubit].append(number)
                else:
                    before.update(since[qubit])
                    last[qubit], since[qubit] = number, []
            before.discard(-1)
            before.discard(number)
            for other in before:
                self.followers[other].append(number)
            self.counts[number] = len(before)


def diagonal_qubits(gate: Gate) -> set[int]:
    """Return the qubits whose value a gate never changes: controls, and both qubits of a phase."""
    matrix = np.asarray(gate.matrix)
    if len(gate.targets) > KEPT_WIDTH:
        places = _diagonal_places(matrix)
    else:  # each search of a plan asks again
        places = _known_places(np.asarray(matrix, np.complex128).tobytes(), len(matrix))
    return {*gate.controls, *(gate.targets[place] for place in places)}


@lru_cache(maxsize=KEPT)
def _known_places(data: bytes, order: int) -> list[int]:
    return _diagonal_places(np.frombuffer(data, np.complex128).reshape(order, order))


def _diagonal_places(matrix: Any) -> list[int]:
    """Return the bits of row and column numbers that no entry of a matrix changes."""
    changed = changed_bits(matrix)
    return [bit for bit in range(len(matrix).bit_length() - 1) if not changed >> bit & 1]
