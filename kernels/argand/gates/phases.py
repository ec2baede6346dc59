"""Phases of one and two qubits in a tile: which gates are such, and their tables. Needs no GPU.

A phase is a diagonal gate on one qubit or two. A controlled one multiplies where both qubits are 1,
so in a pass over the state it needs only one of them in the tile: the other has one value in all of
a tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argand.gates.canonical import GateForm
from argand.gates.fusion import fused_gate
from argand.gates.gate import Gate

MAX_QUBITS = 2
"""Most qubits of such a gate, controls included."""


def is_phase(form: GateForm) -> bool:
    """Return whether a gate is diagonal on one or two qubits, controls included."""
    return form.diagonal and len(form.targets) + len(form.controls) <= MAX_QUBITS


def is_controlled_phase(form: GateForm) -> bool:
    """Return whether a gate is diagonal on two qubits and changes nothing but where both are 1."""
    return is_phase(form) and len(form.controls) == 1 and form.matrix[0, 0] == 1


def diagonal_of(form: GateForm) -> tuple[tuple[int, ...], Any]:
    """Return the qubits of a phase, ascending, and its factors by their bits."""
    qubits = tuple(sorted((*form.targets, *form.controls)))
    gate = Gate(form.matrix, form.targets, form.controls)
    whole = fused_gate([gate, Gate(np.eye(2 ** len(qubits)), qubits)], qubits).matrix
    return qubits, np.diagonal(whole)


def phase_tables(
    forms: Sequence[GateForm], inside: Sequence[int], outside: Sequence[int]
) -> tuple[Any, Any]:
    """Return the factors of settings of qubits ``inside``, and of each with each ``outside``.

    The first (2^len(inside),) are those of phases inside. The second (len(inside), len(outside))
    are those of controlled phases, where both qubits are 1.

    Raises ValueError for another phase that is not inside.
    """
    numbers = np.arange(2 ** len(inside))
    own = np.ones(len(numbers), complex)
    mixed = np.ones((len(inside), len(outside)), complex)
    for form in forms:
        qubits, factors = diagonal_of(form)
        here = [qubit for qubit in qubits if qubit in inside]
        if len(here) == len(qubits):
            bits = [(numbers >> inside.index(q) & 1) << bit for bit, q in enumerate(qubits)]
            own *= factors[sum(bits)]
        elif here and is_controlled_phase(form):
            (other,) = set(qubits) - set(here)
            mixed[inside.index(here[0]), outside.index(other)] *= factors[3]
        else:
            raise ValueError(
                f"phases must be inside, or controlled ones with one qubit there, got {qubits}"
            )
    return own, mixed


def in_rows(
    forms: Sequence[GateForm], tile: Sequence[int], most: int
) -> list[tuple[list[GateForm], tuple[int, ...]]]:
    """Return phases in a row, which commute, by few sets of at most ``most`` qubits of the tile.

    A set grows by the qubit that brings most phases; of several, by the one that most phases have.
    """
    left = [(form, frozenset((*form.targets, *form.controls)).intersection(tile)) for form in forms]
    found = []
    while left:
        taken: frozenset[int] = frozenset()
        while candidates := sorted({q for _, inside in left for q in inside - taken}):
            if len(taken) == most:
                break
            taken |= {max(candidates, key=lambda q: _brought(left, taken, q))}
        own = [(form, inside) for form, inside in left if inside <= taken]
        used = frozenset[int]().union(*(inside for _, inside in own))
        found.append(([form for form, _ in own], tuple(sorted(used))))
        left = [(form, inside) for form, inside in left if not inside <= taken]
    return found


def _brought(
    left: Sequence[tuple[GateForm, frozenset[int]]], taken: frozenset[int], qubit: int
) -> tuple[int, int]:
    """Return how many phases a set has more with a qubit, and how many have it at all."""
    grown = taken | {qubit}
    more = sum(inside <= grown for _, inside in left if qubit in inside)
    return more, sum(qubit in inside for _, inside in left)
