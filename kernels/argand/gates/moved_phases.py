"""Controlled phases that another pass over the state applies, so that fewer sets remain.

A pass takes every phase that may come next, and a set of eight qubits costs more than a product
(`argand.gates.costs`). Phases commute with each other and need one qubit in a tile, so most may
wait for a later set, or come with an earlier one. Needs no GPU.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from argand.gates.canonical import GateForm, gate_form
from argand.gates.fusion import Pass, fused_gate
from argand.gates.gate import Dependencies, Gate
from argand.gates.phases import MAX_QUBITS, in_rows, is_phase
from argand.gates.sequence_plan import PHASE_QUBITS

Tiled = tuple[Sequence[Pass], tuple[int, ...]]
"""Fused gates that share a pass over the state, and the qubits of their tile."""


@dataclass
class _Part:
    """A product of a pass, or a set of its phases: ``inside`` are their qubits in the tile."""

    group: int
    tile: frozenset[int]
    passes: list[Pass]
    inside: frozenset[int] = field(default_factory=frozenset)

    @property
    def is_set(self) -> bool:
        """Whether it is a set of phases."""
        return bool(self.inside)


def with_fewer_sets(
    qubits: int, gates: Sequence[Gate], groups: Sequence[Tiled], controlled_phases: Collection[int]
) -> list[Tiled]:
    """Return the same passes, their ``controlled_phases`` in as few sets of phases as were found.

    Sets are tried from the one of fewest phases on: one whose phases all have a place in others,
    behind the gates that they wait for and before those that wait for them, is no more.
    """
    parts = [
        part for number, group in enumerate(groups) for part in _parts(qubits, gates, number, group)
    ]
    moved = _moved(parts, Dependencies(qubits, gates), controlled_phases)
    found: list[Tiled] = []
    for number, (_, tile) in enumerate(groups):
        passes = [one for part in moved if part.group == number for one in part.passes]
        if passes:
            found.append((passes, tile))
    sets = [
        part for number, group in enumerate(found) for part in _parts(qubits, gates, number, group)
    ]
    fewer = sum(part.is_set for part in sets) < sum(part.is_set for part in parts)
    return found if fewer else list(groups)


def _parts(qubits: int, gates: Sequence[Gate], number: int, group: Tiled) -> Iterator[_Part]:
    """Yield the products and sets of a pass in order."""
    passes, tile = group
    inside = frozenset(tile)

    def phase_of(one: Pass) -> bool:
        return len(one.qubits) <= MAX_QUBITS and is_phase(_form(qubits, gates, one))

    for phases, run in groupby(passes, phase_of):
        left = list(run)
        if not phases:
            yield from (_Part(number, inside, [one]) for one in left)
            continue
        for _, own in in_rows([_form(qubits, gates, one) for one in left], tile, PHASE_QUBITS):
            taken = [one for one in left if inside.intersection(one.qubits) <= {*own}]
            left = [one for one in left if one not in taken]
            yield _Part(number, inside, taken, frozenset(own))


def _form(qubits: int, gates: Sequence[Gate], one: Pass) -> GateForm:
    gate = fused_gate([gates[number] for number in one.gates], one.qubits)
    return gate_form(qubits, gate.matrix, gate.targets, gate.controls)


def _moved(
    parts: Sequence[_Part], dependencies: Dependencies, controlled_phases: Collection[int]
) -> list[_Part]:
    """Return the parts, their phases moved; sets without any are left empty."""
    before: dict[int, list[int]] = {}
    for number, followers in enumerate(dependencies.followers):
        for follower in followers:
            before.setdefault(follower, []).append(number)
    place = {n: at for at, part in enumerate(parts) for one in part.passes for n in one.gates}
    order = [at for at, part in enumerate(parts) if part.is_set]
    order.sort(key=lambda at: len(parts[at].passes))
    gone: set[int] = set()
    for at in order:
        grown: dict[int, frozenset[int]] = {}
        moves: list[tuple[Pass, int]] = []
        for one in parts[at].passes:
            number = one.gates[0]
            if len(one.gates) > 1 or number not in controlled_phases:
                break
            first = max((place[other] for other in before.get(number, [])), default=-1)
            waiting = (place[other] for other in dependencies.followers[number])
            places = range(first + 1, min(waiting, default=len(parts)))
            to = _place_for(frozenset(one.qubits), parts, places, {*gone, at}, grown)
            if to is None:
                break
            moves.append((one, to))
        else:
            gone.add(at)
            parts[at].passes = []
            for one, to in moves:
                parts[to].passes.append(one)
                place[one.gates[0]] = to
            for to, inside in grown.items():
                parts[to].inside = inside
    return list(parts)


def _place_for(
    qubits: frozenset[int],
    parts: Sequence[_Part],
    places: range,
    without: Collection[int],
    grown: dict[int, frozenset[int]],
) -> int | None:
    """Return the set that takes a phase, by how few qubits it has more; ``grown`` takes them."""
    best: tuple[int, int, frozenset[int]] | None = None
    for at in places:
        if at in without or not parts[at].is_set:
            continue
        here = qubits & parts[at].tile
        inside = grown.get(at, parts[at].inside)
        if here and len(inside | here) <= PHASE_QUBITS:
            more = len(here - inside)
            if best is None or more < best[0]:
                best = more, at, inside | here
            if more == 0:
                break
    if best is None:
        return None
    grown[best[1]] = best[2]
    return best[1]
