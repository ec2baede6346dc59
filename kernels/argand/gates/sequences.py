"""Circuits as sequences: several fused gates share a pass over the state. Needs no GPU.

Two searches of `fusion.fuse`: one chooses the qubits of a tile, which the gates of a pass share,
the other fuses the gates of a pass to as few as possible on four qubits. What is not unitary or has
more qubits is a pass of its own, as `circuits` has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from argand.gates.fusion import Pass, fuse
from argand.gates.gate import Gate
from argand.gates.sequence_plan import LOW_QUBITS, MOST_GATES, TILE_QUBITS, WIDTH

_KEPT_TILES, _KEPT_GATES = 8, 4
"""Beginnings that the searches keep: of the tiles of a circuit, of the gates of one pass."""
_UNITARY = 1e-3
"""How far U^H U may be from the identity: a tile's scale leaves room for more."""


def sequences_of(qubits: int, gates: Sequence[Gate]) -> tuple[list[Pass], list[int]]:
    """Fused gates in order, and how many of them in a row share each pass over the state.

    Those that share one are on at most four qubits each; one alone may be any gate.
    """
    alone = [number for number, gate in enumerate(gates) if not _fits(gate)]
    tiles = fuse(
        qubits, gates, TILE_QUBITS, lambda _: 1.0, kept=_KEPT_TILES, given=range(LOW_QUBITS),
        alone=alone,
    )  # fmt: skip
    passes: list[Pass] = []
    groups: list[int] = []
    for tile in tiles:
        if tile.gates[0] in alone:
            passes.append(tile)
            groups.append(1)
            continue
        own = [gates[number] for number in tile.gates]
        fused = fuse(qubits, own, WIDTH, lambda _: 1.0, kept=_KEPT_GATES)
        passes += [
            Pass(tuple(tile.gates[number] for number in one.gates), one.qubits) for one in fused
        ]
        count = -(-len(fused) // MOST_GATES)
        groups += [len(fused) // count + (part < len(fused) % count) for part in range(count)]
    return passes, groups


def in_groups(groups: Sequence[int]) -> list[slice]:
    """Where the members of each group stand in a row of all."""
    ends = list(accumulate(groups, initial=0))
    return [slice(first, last) for first, last in pairwise(ends)]


def _fits(gate: Gate) -> bool:
    """Whether a gate may be part of a sequence."""
    matrix = np.asarray(gate.matrix)
    if len(gate.qubits) > WIDTH:
        return False
    apart = np.abs(matrix.conj().T @ matrix - np.eye(len(matrix))).max()
    return bool(apart <= _UNITARY)
