"""The choice of Pauli strings that share a pass over a large state. Needs no GPU and no CuPy.

A pass has coordinates of amplitudes, each with a mask (`cuda/readout/pauli_kernels.cuh`). Flips
that are masks of registers or lanes are served; they must be linearly independent over exclusive
or, also of the place in a chunk. The masks that are left are the lowest qubits that complete them,
so that lanes read what lies together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argand.readout.bit_runs import Runs, padded, runs_to
from argand.readout.problem import Pauli, by_flips
from argand.readout.source import (
    CHUNK,
    LANE_BITS,
    LANE_FLIPS,
    MAX_RUNS,
    MAX_STRINGS,
    PAIRS,
    REGISTER_BITS,
)

_NONE, _PLACE, _MASKED = 0, 1, 2
"""Kinds of pairs: an amplitude with itself, those of a chunk, and the first of the masks."""


@dataclass(frozen=True)
class PauliPass:
    """One pass over a state.

    Attributes:
        strings: indices of Pauli strings, in the order of their kinds of pairs.
        first: where the strings of each kind begin, and the end of the last.
        masks: masks of the bits of a register's number, then of a lane's.
        runs: bring the bits of a tile's number to the qubits that are left.
        tiles: how many there are.
    """

    strings: tuple[int, ...]
    first: tuple[int, ...]
    masks: tuple[int, ...]
    runs: tuple[tuple[int, int], ...]
    tiles: int

    def values(self, paulis: Sequence[Pauli], places: int) -> dict[str, Any]:
        """Return the members of ``PauliArguments`` without addresses; ``places`` are a chunk's."""
        mine = [paulis[number] for number in self.strings]
        registers, lanes = self.masks[:REGISTER_BITS], self.masks[REGISTER_BITS:]
        return {
            "tiles": self.tiles, "register_mask": registers, "lane_mask": lanes,
            "signs": padded([one.signs for one in mine], MAX_STRINGS),
            "run_mask": padded([mask for mask, _ in self.runs], MAX_RUNS),
            "run_shift": padded([shift for _, shift in self.runs], MAX_RUNS),
            "runs": len(self.runs),
            "pattern": padded([_pattern(one.signs, registers, places) for one in mine],
                              MAX_STRINGS),
            "odd": sum(1 << number for number, one in enumerate(mine) if one.ys % 2),
            "first": self.first,
        }  # fmt: skip


def make_passes(qubits: int, item: int, paulis: Sequence[Pauli]) -> list[PauliPass]:
    """Return passes that serve every Pauli string once, those with many strings first."""
    waiting = sorted(by_flips(paulis).items(), key=lambda group: -len(group[1]))
    passes = []
    while waiting:
        basis, room = _Basis([1] * _place_qubits(item)), MAX_STRINGS
        flips_of: list[int] = []
        taken: dict[int, list[int]] = {kind: [] for kind in range(PAIRS)}
        rest: list[tuple[int, list[int]]] = []
        for flips, numbers in waiting:
            kind = _kind(flips, item)
            if kind == _MASKED:
                if not room or _MASKED + len(flips_of) == PAIRS or not basis.add(flips):
                    rest.append((flips, numbers))
                    continue
                kind += len(flips_of)
                flips_of.append(flips)
            taken[kind] = numbers[:room]
            room -= len(taken[kind])
            if taken[kind] != numbers:
                rest.append((flips, numbers[len(taken[kind]) :]))
        passes.append(_completed_pass(qubits, item, basis, flips_of, taken))
        waiting = rest
    return passes


def factor_of(pauli: Pauli, pairs_once: bool) -> float:
    """Return the factor of the sum of a string's terms: its coefficient, i^ys, and 2 for pairs.

    Kernels add imaginary parts where ys is odd: Re(i^ys c) is Re c, -Im c, -Re c, Im c.
    """
    sign = (-1.0) ** ((pauli.ys + 1) // 2)
    return sign * pauli.coefficient * (2.0 if pairs_once and pauli.flips else 1.0)


class _Basis:
    """Masks that are linearly independent over exclusive or, each with a highest bit of its own."""

    def __init__(self, masks: Sequence[int]) -> None:
        self.rows: dict[int, int] = {}
        for mask in masks:
            self.add(mask)

    def add(self, mask: int) -> bool:
        """Take a mask where it is independent of those before."""
        for bit in sorted(self.rows, reverse=True):
            if mask >> bit & 1:
                mask ^= self.rows[bit]
        if mask:
            self.rows[mask.bit_length() - 1] = mask
        return mask != 0


def _kind(flips: int, item: int) -> int:
    if not flips:
        return _NONE
    return _PLACE if flips == 1 and _place_qubits(item) else _MASKED


def _place_qubits(item: int) -> int:
    return (CHUNK // item).bit_length() - 1


def _completed_pass(
    qubits: int, item: int, basis: _Basis, flips: list[int], taken: dict[int, list[int]]
) -> PauliPass:
    """Complete the masks by single qubits: the lowest for lanes that read side by side."""
    units = iter([1 << qubit for qubit in range(qubits)])

    def lowest() -> int:
        return next(unit for unit in units if basis.add(unit))

    side_by_side = [lowest() for _ in range(LANE_BITS - LANE_FLIPS)]
    served = flips + [0] * (PAIRS - _MASKED - len(flips))
    served = [mask or lowest() for mask in served]
    masks = (*served[:REGISTER_BITS], *side_by_side, *served[REGISTER_BITS:])
    first = [0]
    for kind in range(PAIRS):
        first.append(first[-1] + len(taken[kind]))
    left = [qubit for qubit in range(qubits) if qubit not in basis.rows]
    runs: Runs = runs_to(left)
    strings = tuple(number for kind in range(PAIRS) for number in taken[kind])
    return PauliPass(strings, tuple(first), masks, tuple(runs), 1 << len(left))


def _pattern(signs: int, registers: Sequence[int], places: int) -> int:
    """Return the signs of a thread's amplitudes: bit (register, place) is 1 where it is minus."""
    found = 0
    for number in range(2 ** len(registers) * places):
        flipped = number % places
        for bit, mask in enumerate(registers):
            if number // places >> bit & 1:
                flipped ^= mask
        found |= ((flipped & signs).bit_count() & 1) << number
    return found
