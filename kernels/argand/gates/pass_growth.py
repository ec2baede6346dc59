"""A pass over the state that takes gates of a circuit qubit by qubit. Needs no GPU.

Most of the time of planning a circuit is spent here: loops have what they need in locals, and what
further qubits would bring is counted before anything is copied for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from argand.gates.gate import Dependencies

_MAX_GROWTHS = 16
"""Sets of further qubits that are compared."""


@dataclass
class GrowingPass:
    """A pass that is being put together, and what it would leave.

    Attributes:
        mask: its qubits as bits.
        taken: its gates.
        waiting: gates that wait for some gates that are taken and for others that are not: the
            number of the latter.
        ready: gates that wait for nothing more and are not taken.
        weight: the weight of its gates together.
    """

    mask: int
    taken: list[int]
    waiting: dict[int, int]
    ready: list[int]
    weight: float

    def with_one(
        self, number: int, dependencies: Dependencies, weights: Sequence[float]
    ) -> GrowingPass:
        """Return the pass with one gate that can be taken, and no other."""
        alone = GrowingPass(0, [], self.waiting, [number], 0.0)
        mask = dependencies.masks[number]
        others = [other for other in self.ready if other != number]
        found = alone.grown(mask, dependencies, weights, most=1)
        found.ready += others
        return found

    def grown(
        self,
        mask: int,
        dependencies: Dependencies,
        weights: Sequence[float],
        most: int | None = None,
    ) -> GrowingPass:
        """Return it with the gates that can be taken on these further qubits, ``most`` at most."""
        mask |= self.mask
        taken, waiting, weight = list(self.taken), dict(self.waiting), self.weight
        masks, phases = dependencies.masks, dependencies.controlled_phases
        ready: list[int] = []
        candidates = list(self.ready)
        while candidates:
            number = candidates.pop()
            own = masks[number]
            apart = own & ~mask and not (number in phases and own & mask)
            if apart or len(taken) == most:
                ready.append(number)
                continue
            taken.append(number)
            weight += weights[number]
            for follower in dependencies.followers[number]:
                left = waiting.get(follower, dependencies.counts[follower]) - 1
                if left == 0:
                    waiting.pop(follower, None)
                    candidates.append(follower)
                else:
                    waiting[follower] = left
        return GrowingPass(mask, taken, waiting, ready, weight)


def grow(
    state: GrowingPass,
    mask: int,
    width: int,
    dependencies: Dependencies,
    weights: Sequence[float],
    detours: int,
    known: dict[int, int],
) -> list[GrowingPass]:
    """Return a pass that begins on these qubits, grown by the best further ones each time.

    With ``detours``, return also passes that grow by the second best ones, at most that many times.
    The gates of a pass depend on its qubits alone, not on their order: ``known`` has, for the
    qubits of passes that grew from this state, how many detours were left, and from there none
    grows again.
    """
    found: list[GrowingPass] = []
    if known.get(mask, -1) >= detours:
        return found
    known[mask] = detours
    growing = [(state.grown(mask, dependencies, weights), detours)]
    while growing:
        grown, left = growing.pop()
        ranked = _growths(grown, width, dependencies, weights)
        if not ranked:
            found.append(grown)
            continue
        # The last is the next to grow.
        for more, rest in ((ranked[1:2], left - 1), (ranked[:1], left)):
            for one in more:
                if known.get(grown.mask | one, -1) < rest:
                    known[grown.mask | one] = rest
                    growing.append((grown.grown(one, dependencies, weights), rest))
    return found


def _growths(
    grown: GrowingPass, width: int, dependencies: Dependencies, weights: Sequence[float]
) -> list[int]:
    """Return further qubits of a pass, of the first gates that wait; best those of most gates."""
    mask, masks, phases = grown.mask, dependencies.masks, dependencies.controlled_phases
    room = width - mask.bit_count()
    if room <= 0:
        return []
    # None that is ready can be taken yet.
    lacking = [(number, masks[number] & ~mask) for number in sorted(grown.ready)]
    choices: dict[int, None] = {}
    for _, more in lacking:
        if more.bit_count() <= room:
            choices[more] = None
            if len(choices) == _MAX_GROWTHS:
                break
    ready_phases = [one for one in lacking if one[0] in phases]
    others = [one for one in lacking if one[0] not in phases] if ready_phases else lacking
    gains = {}
    for more in choices:
        first = [number for number, lack in others if not lack & ~more]
        first += [number for number, lack in ready_phases if lack & more]
        gain = _weight(first, mask | more, grown.waiting, dependencies, weights)
        gains[more] = gain / more.bit_count()
    return sorted(gains, key=lambda more: -gains[more])


def _weight(
    first: list[int],
    mask: int,
    waiting: Mapping[int, int],
    dependencies: Dependencies,
    weights: Sequence[float],
) -> float:
    """Return the weight of these gates and of those that can follow them on the qubits of a mask.

    ``first`` is extended by the latter.
    """
    masks, phases, counts = dependencies.masks, dependencies.controlled_phases, dependencies.counts
    followers = dependencies.followers
    left: dict[int, int] = {}
    weight = 0.0
    for number in first:
        weight += weights[number]
        for follower in followers[number]:
            own = masks[follower]
            if own & ~mask and not (follower in phases and own & mask):
                continue
            count = left.get(follower)
            if count is None:
                count = waiting.get(follower) or counts[follower]
            left[follower] = count - 1
            if count == 1:
                first.append(follower)
    return weight
