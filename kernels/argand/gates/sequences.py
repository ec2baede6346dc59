"""Circuits as sequences: several fused gates share a pass over the state. Needs no GPU.

Two searches of `fusion.fuse`: one chooses the qubits of a tile, which the gates of a pass share,
the other fuses the gates of a pass to as few as possible on four qubits. What is not unitary or has
more qubits is a pass of its own, as `circuits` has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from argand.gates.fusion import Pass, fuse
from argand.gates.gate import Gate
from argand.gates.sequence_plan import LOW_QUBITS, MOST_GATES, TILE_QUBITS, WIDTH

_KEPT_TILES, _KEPT_GATES = 8, 4
"""Beginnings that the searches keep: of the tiles of a circuit, of the gates of one pass."""
_UNITARY = 1e-3
"""How far U^H U may be from the identity: a tile's scale leaves room for more."""


@dataclass(frozen=True)
class SequencePass:
    """The fused gates of one pass over the state, in order; one alone is no sequence."""

    gates: tuple[Pass, ...]


def sequences_of(qubits: int, gates: Sequence[Gate]) -> list[SequencePass]:
    """Passes for a circuit, each a sequence of gates fused to four qubits, or one other gate."""
    alone = [number for number, gate in enumerate(gates) if not _fits(gate)]
    tiles = fuse(
        qubits, gates, TILE_QUBITS, lambda _: 1.0, kept=_KEPT_TILES, given=range(LOW_QUBITS),
        alone=alone,
    )  # fmt: skip
    found: list[SequencePass] = []
    for tile in tiles:
        if tile.gates[0] in alone:
            found.append(SequencePass((tile,)))
            continue
        own = [gates[number] for number in tile.gates]
        fused = [
            Pass(tuple(tile.gates[number] for number in one.gates), one.qubits)
            for one in fuse(qubits, own, WIDTH, lambda _: 1.0, kept=_KEPT_GATES)
        ]
        found += [
            SequencePass(tuple(fused[first : first + MOST_GATES]))
            for first in range(0, len(fused), MOST_GATES)
        ]
    return found


def _fits(gate: Gate) -> bool:
    """Whether a gate may be part of a sequence."""
    matrix = np.asarray(gate.matrix)
    if len(gate.qubits) > WIDTH:
        return False
    apart = np.abs(matrix.conj().T @ matrix - np.eye(len(matrix))).max()
    return bool(apart <= _UNITARY)
