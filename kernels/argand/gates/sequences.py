"""Circuits as sequences: several fused gates share a pass over the state. Needs no GPU.

Two searches of `fusion.fuse`: one chooses the qubits of a tile, which the gates of a pass share,
the other fuses the gates of a pass to as few as possible on four qubits. What is not unitary or has
more qubits is a pass of its own, as `circuits` has them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np

from argand.gates.canonical import gate_form
from argand.gates.fusion import NextPasses, Pass, PassRules, bits_of, fuse
from argand.gates.gate import Dependencies, Gate, is_unitary
from argand.gates.moved_phases import Tiled, with_fewer_sets
from argand.gates.pass_growth import GrowingPass, grow
from argand.gates.phases import is_controlled_phase
from argand.gates.sequence_plan import (
    LOW_QUBITS,
    WIDTH,
    completed_tile,
)  # fmt: skip

TILE_BEAM_WIDTHS = 32, 16, 12, 8
"""Beam widths of the searches of the tiles of a circuit. Wider beams find fewer passes, narrower
ones sometimes fewer gates in as many; what the first search found makes the others short."""
_GATE_BEAM_WIDTH = 16
"""Beam width of the search that fuses the gates of one pass."""
_MAX_WORK = 16_000
"""Largest product of the gates of a circuit and the beam width of the search of its tiles."""
_PHASE_WEIGHT = 0.1
"""Weight of a phase beside a gate that needs a product."""


@dataclass(frozen=True)
class SearchMemo:
    """Tiles of one size and fused gates that searches of a circuit found, for further searches.

    Attributes:
        tiles: the tiles that may come next, as `fusion.fuse` keeps them.
        gates: the fused gates of a tile, by their numbers and the beam width of the search.
    """

    tiles: NextPasses = field(default_factory=dict)
    gates: dict[tuple[tuple[int, ...], int], list[Pass]] = field(default_factory=dict)


@dataclass(frozen=True)
class SharedPass:
    """Fused gates in a row that share a pass over the state: how many, and the qubits of the tile.

    One gate alone has no tile.
    """

    count: int
    tile: tuple[int, ...] = ()


def sequences_of(
    qubits: int,
    gates: Sequence[Gate],
    size: int,
    most: int,
    *,
    beam_width: int = TILE_BEAM_WIDTHS[0],
    phases: bool = True,
    memo: SearchMemo | None = None,
) -> tuple[list[Pass], list[SharedPass]]:
    """Return fused gates in order, and which of them in a row share each pass over the state.

    Those that share one are on at most four qubits each, or phases; one alone may be any gate. A
    tile has ``size`` qubits, and at most ``most`` gates share it that are not phases. Without
    ``phases`` controlled phases are gates as others are. ``beam_width`` is that of `fusion.fuse`.
    ``memo`` holds what searches that differ only in it found, and takes what this one finds.
    """
    memo = SearchMemo() if memo is None else memo
    forms = [gate_form(qubits, gate.matrix, gate.targets, gate.controls) for gate in gates]
    alone = [number for number, gate in enumerate(gates) if not _fits(gate)]
    controlled_phases = [
        number for number, form in enumerate(forms) if phases and is_controlled_phase(form)
    ]
    tiles = fuse(
        qubits, gates,
        PassRules(
            size, lambda _: 1.0, given=range(LOW_QUBITS), alone=alone,
            controlled_phases=controlled_phases,
        ),
        beam_width=max(1, min(beam_width, _MAX_WORK // max(1, len(gates)))), memo=memo.tiles,
    )  # fmt: skip
    rules_of_gates = PassRules(WIDTH, lambda _: 1.0)
    tiled: list[Tiled] = []
    for tile in tiles:
        if tile.gates[0] in alone:
            tiled.append(([tile], ()))
            continue
        phases_of_tile = [
            place for place, number in enumerate(tile.gates) if number in controlled_phases
        ]
        search = tile.gates, 0 if phases_of_tile else min(beam_width, _GATE_BEAM_WIDTH)
        if search not in memo.gates:
            own = [gates[number] for number in tile.gates]
            memo.gates[search] = (
                _with_phases(qubits, own, phases_of_tile)
                if phases_of_tile
                else fuse(qubits, own, rules_of_gates, beam_width=search[1])
            )
        ordered = memo.gates[search]
        chosen = completed_tile(qubits, tile.qubits, size)
        for part in _parts(ordered, {*phases_of_tile}, most):
            own_passes = [Pass(tuple(tile.gates[n] for n in one.gates), one.qubits) for one in part]
            tiled.append((own_passes, chosen))
    if controlled_phases:
        tiled = with_fewer_sets(qubits, gates, tiled, controlled_phases)
    passes = [one for own_passes, _ in tiled for one in own_passes]
    return passes, [SharedPass(len(own_passes), chosen) for own_passes, chosen in tiled]


def _parts(ordered: Sequence[Pass], phases: Collection[int], most: int) -> list[list[Pass]]:
    """Return fused gates in parts of at most ``most`` that are not phases."""
    found: list[list[Pass]] = [[]]
    products = 0
    for one in ordered:
        products += one.gates[0] not in phases or len(one.gates) > 1
        if products > most:
            found.append([])
            products = 1
        found[-1].append(one)
    return found


def _with_phases(qubits: int, gates: Sequence[Gate], phases: Sequence[int]) -> list[Pass]:
    """Return one pass's gates fused to four qubits; phases wait until a gate waits for them."""
    dependencies = Dependencies(qubits, gates)
    weights = [1.0] * len(gates)
    inside = 0
    for number, mask in enumerate(dependencies.own_masks):
        inside |= 0 if number in phases else mask
    for number in phases:
        weights[number] = _PHASE_WEIGHT
        if dependencies.masks[number] & ~inside:  # in no product
            dependencies.masks[number] |= (1 << qubits + WIDTH) - 1
    start = [number for number, count in enumerate(dependencies.counts) if count == 0]
    state = GrowingPass(0, [], {}, start, 0.0)
    found: list[Pass] = []
    while state.ready:
        seeds = [number for number in state.ready if number not in phases]
        if seeds:
            known: dict[int, int] = {}
            grown = max(
                (
                    one
                    for seed in sorted(seeds)
                    for one in grow(
                        state, dependencies.masks[seed], WIDTH, dependencies, weights, 1, known
                    )
                ),
                key=lambda one: one.weight,
            )
            used = 0
            for number in grown.taken:
                used |= dependencies.own_masks[number]
            found.append(Pass(tuple(sorted(grown.taken)), bits_of(used)))
            state = GrowingPass(0, [], grown.waiting, sorted(grown.ready), 0.0)
            continue
        for number in sorted(state.ready):
            found.append(Pass((number,), bits_of(dependencies.own_masks[number])))
            state = state.with_one(number, dependencies, weights)
            state = GrowingPass(0, [], state.waiting, sorted(state.ready), 0.0)
    return found


def in_groups(groups: Sequence[SharedPass]) -> list[slice]:
    """Return where the members of each group stand in a row of all."""
    ends = list(accumulate((group.count for group in groups), initial=0))
    return [slice(first, last) for first, last in pairwise(ends)]


def _fits(gate: Gate) -> bool:
    """Return whether a gate may be part of a sequence."""
    if len(gate.qubits) > WIDTH:
        return False
    return is_unitary(np.asarray(gate.matrix))
