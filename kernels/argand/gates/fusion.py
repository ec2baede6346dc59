"""The fusion of a circuit's gates: fewer passes over the state, each on a few more qubits.

A pass costs about the same up to six qubits, so the fewest passes are the fastest. Gates are taken
in any order that their dependencies allow: two gates have to keep their order where they share a
qubit on which one of them is not diagonal. Needs no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argand.gates.canonical import gate_form
from argand.gates.gate import Dependencies, Gate, as_gates
from argand.gates.pass_growth import GrowingPass, grow

_MAX_SEEDS = 6
"""Gates tried as the first of a pass: more find hardly fewer passes."""
_MAX_BRANCHES = 4
"""Passes tried after the same ones: with more, those kept beside each other are too much alike."""
_FEW_ROWS = 8
"""Rows of a matrix up to which products go without BLAS."""
_SINGLE_WEIGHT = 0.25
"""Weight of a gate on one qubit beside one on two: it can join almost any pass."""
_LIGHT_WEIGHT = 0.02
"""Weight of a gate that needs one of its qubits: many are applied at once."""

Cost = Callable[[tuple[int, ...]], float]
"""Predicted seconds of a pass over the state for a gate on these qubits."""

NextPasses = dict[tuple[int, tuple[int, ...]], list[GrowingPass]]
"""Passes that may come next, by their number and by the gates that wait for nothing."""


@dataclass(frozen=True)
class Pass:
    """Gates that are applied as one, by their numbers in the circuit in order, and their qubits."""

    gates: tuple[int, ...]
    qubits: tuple[int, ...]


@dataclass(frozen=True)
class PassRules:
    """The limits and the cost of a pass over the state.

    Attributes:
        width: most qubits of a pass; a gate of more has a pass to itself.
        cost: predicted seconds of a pass, by its qubits.
        given: qubits that every pass has.
        alone: numbers of further gates that have a pass to themselves.
        controlled_phases: numbers of gates that need only one of their qubits in a pass.
    """

    width: int
    cost: Cost
    given: Sequence[int] = ()
    alone: Sequence[int] = ()
    controlled_phases: Sequence[int] = ()


@dataclass(frozen=True)
class _Begun:
    """The first passes of a circuit, what they take and hold, and what they leave."""

    seconds: float
    weight: float
    passes: tuple[Pass, ...]
    left: GrowingPass


def fuse(
    qubits: int,
    gates: Sequence[Gate],
    rules: PassRules,
    *,
    beam_width: int = 1,
    memo: NextPasses | None = None,
) -> list[Pass]:
    """Return the passes over a state of ``qubits`` qubits for a circuit, by a beam search.

    From several first gates a pass grows by the qubits that bring most further gates, and of these
    passes the one with most gates for its predicted time is taken. With a ``beam_width`` above 1
    that many beginnings of the circuit go on beside each other, the best few passes after each: of
    those with equally many passes the ones with most gates for their time. ``memo`` has what
    searches that differ in the beam width alone found, and takes what this one finds.
    """
    memo = {} if memo is None else memo
    search = _Search(qubits, gates, rules)
    branches = min(beam_width, _MAX_BRANCHES)
    begun = [search.nothing]
    best: _Begun | None = None if gates else begun.pop()
    while begun:
        following: dict[tuple[int, ...], _Begun] = {}
        for one in begun:
            beginning = branches, tuple(one.left.ready)
            if beginning not in memo:
                memo[beginning] = search.next_passes(one.left, branches)
            for grown in memo[beginning]:
                more = search.with_pass(one, grown)
                # Gates that wait for nothing say which are left.
                key = tuple(more.left.ready)
                if key not in following or more.seconds < following[key].seconds:
                    following[key] = more
        ended = following.pop((), None)
        if ended is not None and (best is None or ended.seconds < best.seconds):
            best = ended
        begun = sorted(following.values(), key=lambda one: one.seconds / one.weight)[:beam_width]
        begun = [one for one in begun if best is None or one.seconds < best.seconds]
    assert best is not None
    return list(best.passes)


class _Search:
    """The gates of a circuit under the rules of its passes: which passes may come next.

    Attributes:
        nothing: the beginning of the circuit that has no pass yet.
    """

    def __init__(self, qubits: int, gates: Sequence[Gate], rules: PassRules) -> None:
        self._width, self._cost = rules.width, rules.cost
        self._given = sum(1 << qubit for qubit in rules.given)
        self._dependencies = dependencies = Dependencies(qubits, gates)
        for number in rules.alone:  # wider than any pass
            dependencies.masks[number] |= (1 << qubits + rules.width) - 1
        weights = [1.0 if x.bit_count() > 1 else _SINGLE_WEIGHT for x in dependencies.masks]
        dependencies.controlled_phases = frozenset(rules.controlled_phases)
        for number in rules.controlled_phases:
            weights[number] = _LIGHT_WEIGHT
        self._weights = weights
        start = [number for number, count in enumerate(dependencies.counts) if count == 0]
        self.nothing = _Begun(0.0, 0.0, (), GrowingPass(0, [], {}, start, 0.0))

    def next_passes(self, state: GrowingPass, most: int) -> list[GrowingPass]:
        """Return up to ``most`` passes that may come next, those of most gates per cost first."""
        dependencies, weights = self._dependencies, self._weights
        seeds = sorted(state.ready, key=lambda number: (-weights[number], number))[:_MAX_SEEDS]
        passes: dict[int, GrowingPass] = {}
        known: dict[int, int] = {}
        detours = 1 if most > 1 else 0
        for seed in seeds:
            mask = dependencies.masks[seed] | self._given
            if mask.bit_count() > self._width:
                passes[mask] = state.with_one(seed, dependencies, weights)
            elif mask not in passes:
                for grown in grow(state, mask, self._width, dependencies, weights, detours, known):
                    passes.setdefault(grown.mask, grown)
        return sorted(
            passes.values(), key=lambda grown: -grown.weight / self._cost(bits_of(grown.mask))
        )[:most]

    def with_pass(self, begun: _Begun, grown: GrowingPass) -> _Begun:
        """Return a beginning with one more pass, on the qubits that its gates need."""
        dependencies = self._dependencies
        taken = tuple(sorted(grown.taken))
        used = 0
        for number in taken:
            own = dependencies.own_masks[number]
            used |= own & grown.mask if number in dependencies.controlled_phases else own
        qubits = bits_of(used)
        return _Begun(
            begun.seconds + self._cost(qubits), begun.weight + grown.weight,
            (*begun.passes, Pass(taken, qubits)),
            GrowingPass(0, [], grown.waiting, sorted(grown.ready), 0.0),
        )  # fmt: skip


def bits_of(mask: int) -> tuple[int, ...]:
    """Return the places of a mask's bits, ascending."""
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def fused_gate(gates: Sequence[Gate], qubits: Sequence[int]) -> Gate:
    """Return one gate on these qubits, ascending: the product of gates in order, in complex128."""
    if len(gates) == 1:
        return gates[0]
    width = len(qubits)
    place = {qubit: index for index, qubit in enumerate(qubits)}
    product = np.eye(2**width, dtype=np.complex128)
    numbers = np.arange(2**width)
    for gate in gates:
        targets = [place[target] for target in gate.targets]
        controlled = sum(1 << place[control] for control in gate.controls)
        inner = sum(1 << target for target in targets)
        # Rows of the product by the setting of the targets, where the controls are 1.
        rest = numbers[(numbers & (inner | controlled)) == controlled]
        settings = np.arange(2 ** len(targets))
        offsets = sum(((settings >> bit) & 1) << target for bit, target in enumerate(targets))
        rows = np.asarray(offsets)[:, None] | rest
        moved = product[rows].reshape(len(settings), -1)
        found = _times(np.asarray(gate.matrix, np.complex128), moved)
        product[rows] = found.reshape(*rows.shape, -1)
    return Gate(product, tuple(qubits))


def _times(matrix: Any, columns: Any) -> Any:
    """Return the product; few rows without BLAS, whose threads take longer to wake than it does."""
    if len(matrix) > _FEW_ROWS:
        return matrix @ columns
    found = matrix[:, 0, None] * columns[0]
    for k in range(1, len(matrix)):
        found += matrix[:, k, None] * columns[k]
    return found


def checked_gates(qubits: int, gates: Sequence[Any]) -> list[Gate]:
    """Return gates in their cheapest form, from gates or tuples of matrix, targets and controls.

    Raises ValueError that names the first one that is wrong, TypeError for what is no gate.
    """
    found = []
    for number, gate in enumerate(as_gates(gates)):
        try:
            form = gate_form(qubits, gate.matrix, gate.targets, gate.controls)
        except ValueError as error:
            raise ValueError(f"gate {number}: {error}") from error
        found.append(Gate(form.matrix, form.targets, form.controls))
    return found


def passes_by_width(passes: Sequence[Pass]) -> Mapping[int, int]:
    """Return how many passes there are on how many qubits."""
    counts: dict[int, int] = {}
    for one in passes:
        counts[len(one.qubits)] = counts.get(len(one.qubits), 0) + 1
    return dict(sorted(counts.items()))
