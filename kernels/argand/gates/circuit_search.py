"""Plans of circuits: their gates fused to few passes over the state, by predicted time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from argand.gates.canonical import GateForm, gate_form
from argand.gates.costs import GateCosts, SequenceCosts
from argand.gates.diagonal_runs import GateRun, fewest_tiles, phases_beside_others, split_phases
from argand.gates.fusion import Cost, Pass, PassRules, fuse, fused_gate, passes_by_width
from argand.gates.gate import Gate
from argand.gates.plan import MAX_WIDTH
from argand.gates.sequence_plan import WIDTH
from argand.gates.sequences import TILE_BEAM_WIDTHS, SearchMemo, SharedPass, in_groups, sequences_of
from argand.precision import Precision

_BEAM_WIDTH = 16
"""Beam width of the search that fuses a circuit; with 64 it hardly finds fewer passes."""
_SHORT_BEAM_WIDTH = 4
"""Beam width of the searches that compare sizes of tiles."""
_AS_FAST = 1.1
"""Largest ratio of two short searches' predicted times whose order long searches may change: these
take up to a tenth off."""
_ALIKE = 1.07
"""`_AS_FAST` for a plan with phases apart and one without, which short searches rank less well
(docs/experiments/2026-11-29-diagonal-runs.md)."""
_MAX_JOINED = 2.0
"""Most phases on two qubits, for each other gate, with which plans are tried that fuse them to
dense gates. A chain has 1.0 and gains, a grid has 1.6 and does not."""
_MAX_WORK = 16_000
"""Largest product of gates and beam width: the search takes up to a millisecond each."""


@dataclass(frozen=True)
class _Sharing:
    """One choice of how gates share passes, and what searches of it found.

    Attributes:
        width: most qubits of a fused gate that has a pass to itself.
        runs: the gates.
        phases: whether phases on two qubits stay apart from dense gates.
        tile: the costs of the tile that shared passes have.
        memo: what its searches found, for the next ones.
        plans: plans by the passes and groups that were found.
    """

    width: int
    runs: Sequence[GateRun]
    phases: bool
    tile: SequenceCosts
    memo: SearchMemo = field(default_factory=SearchMemo, repr=False)
    plans: dict[tuple[tuple[Pass, ...], tuple[SharedPass, ...]], CircuitPlan] = field(
        default_factory=dict, repr=False
    )


@dataclass(frozen=True)
class CircuitPlan:
    """The passes that run a circuit: its gates, fused.

    Attributes:
        qubits: qubits of the state.
        precision: the precision of the products.
        width: the most qubits that gates were fused to.
        passes: the gates of the circuit that each fused gate consists of. A phase of two qubits may
            be in parts of several.
        forms: the fused gates.
        groups: which fused gates in a row share each pass over the state (`sequences`).
        seconds: predicted for each pass over the state.
        measured: whether the predictions are from measurements on this device.
    """

    qubits: int
    precision: Precision
    width: int
    passes: tuple[Pass, ...]
    forms: tuple[GateForm, ...] = field(repr=False)
    groups: tuple[SharedPass, ...] = field(repr=False)
    seconds: tuple[float, ...] = field(repr=False)
    measured: bool

    @property
    def predicted_seconds(self) -> float:
        """Sum of what all passes are predicted to take."""
        return sum(self.seconds)

    def __str__(self) -> str:
        counts = passes_by_width(self.passes)
        widths = ", ".join(f"{count} on {width}" for width, count in counts.items())
        shown = f" ({widths} qubits)" if widths else ""
        passes = "pass" if len(self.groups) == 1 else "passes"
        shared = f", {len(self.passes)} fused gates" if len(self.groups) < len(self.passes) else ""
        gates = len({number for one in self.passes for number in one.gates})
        source = "measured here" if self.measured else "the table's costs"
        return (
            f"{gates} gates on {self.qubits} qubits at {self.precision.name}: "
            f"{len(self.groups)} {passes}{shared}{shown}, "
            f"{1e3 * self.predicted_seconds:.3g} ms predicted ({source})"
        )

    def listing(self) -> str:
        """Return a line for each fused gate: its qubits, its gates' numbers, its predicted time."""
        lines = [str(self)]
        for group, seconds in zip(in_groups(self.groups), self.seconds, strict=True):
            for one, form in zip(self.passes[group], self.forms[group], strict=True):
                kind = "permutation" if form.monomial else "product"
                qubits = ",".join(map(str, one.qubits))
                gates = ",".join(map(str, one.gates))
                lines.append(f"  {kind} on {qubits}: gates {gates}; {1e3 * seconds:.3g} ms")
        return "\n".join(lines)


@dataclass(frozen=True)
class CircuitSearch:
    """Plans of a circuit, its gates as `diagonal_runs` has them, by their predicted times."""

    qubits: int
    runs: Sequence[GateRun]
    precision: Precision
    costs: GateCosts

    @property
    def _item(self) -> int:
        return 16 if self.precision.output == "complex128" else 8

    def _cost(self, targets: tuple[int, ...]) -> float:
        return self.costs.seconds(self.qubits, targets, self._item)

    def cheapest(self, width: int | None) -> CircuitPlan:
        """Return the plan of the least predicted time; ``width`` as in `plan_circuit`."""
        gates = [run.gate for run in self.runs]
        shares = width is None or width >= WIDTH
        if width is None:
            width, passes = cheapest_passes(self.qubits, gates, self._cost)
        else:
            passes = fuse(self.qubits, gates, PassRules(width, self._cost))
        # The search knows only the qubits of a pass. The forms show which passes need no products.
        alone = self._alone(width, passes)
        shared = self._short_searches(max(width, WIDTH)) if shares else []
        plans = [alone, *(plan for plan, _ in shared)]
        beam_width = min(_BEAM_WIDTH, _MAX_WORK // max(1, len(gates)))
        # A long search covers only what a short one found to be about as fast as the fastest.
        least = min(plan.predicted_seconds for plan in plans)
        if beam_width > 1 and alone.predicted_seconds <= _AS_FAST * least:
            rules = PassRules(width, self._cost)
            longer = fuse(self.qubits, gates, rules, beam_width=beam_width)
            plans.append(self._alone(width, longer))
        plans += self._long_searches(shared, least)
        return min(plans, key=lambda plan: plan.predicted_seconds)

    def _alone(self, width: int, passes: Sequence[Pass]) -> CircuitPlan:
        """Return the plan in which each fused gate is a pass over the state."""
        return self._plan_of(width, self.runs, passes, [SharedPass(1)] * len(passes))

    @cached_property
    def _fewest_passes(self) -> int:
        """Return how few passes may be: tiles of all qubits that gates change."""
        return fewest_tiles(self.runs, max(tile.qubits for tile in self.costs.sequences))

    def _short_searches(self, width: int) -> list[tuple[CircuitPlan, _Sharing]]:
        """Return plans in which gates share passes, by narrow beams, and how each was searched.

        Few phases on neighbouring qubits are best part of dense gates, many on all qubits apart.
        Apart they take fewer passes, if any fewer are possible.
        """
        tiles = [one for one in self.costs.sequences if self.qubits >= one.qubits]
        phases = phases_beside_others(self.runs)
        found: list[tuple[CircuitPlan, _Sharing]] = []
        if not tiles:
            return found
        if phases <= _MAX_JOINED:
            sharings = [_Sharing(width, self.runs, False, tile) for tile in tiles]
            found += [(self._shared(one, _SHORT_BEAM_WIDTH), one) for one in sharings]
            fastest, _ = min(found, key=lambda one: one[0].predicted_seconds)
            if len(fastest.groups) <= self._fewest_passes:
                return found
        if phases:
            runs = split_phases(self.runs)
            sharings = [_Sharing(width, runs, True, tile) for tile in tiles]
            found += [(self._shared(one, _SHORT_BEAM_WIDTH), one) for one in sharings]
        return found

    def _long_searches(
        self, shared: Sequence[tuple[CircuitPlan, _Sharing]], least: float
    ) -> list[CircuitPlan]:
        """Return plans by wide beams, where a short search's plan is near the ``least`` time.

        There are plans with phases apart and without; the kind whose best plan is slower has to be
        nearer (`_ALIKE`).
        """
        if not shared:
            return []
        _, better = min(shared, key=lambda one: one[0].predicted_seconds)
        found = []
        for plan, sharing in shared:
            most = _AS_FAST if sharing.phases is better.phases else _ALIKE
            if plan.predicted_seconds <= most * least:
                found.append((self._shared(sharing, TILE_BEAM_WIDTHS[0]), sharing))
        if not found:
            return []
        fastest, best = min(found, key=lambda one: one[0].predicted_seconds)
        narrower = TILE_BEAM_WIDTHS[1:] if len(fastest.groups) > self._fewest_passes else ()
        return [*(plan for plan, _ in found), *(self._shared(best, width) for width in narrower)]

    def _shared(self, sharing: _Sharing, beam_width: int) -> CircuitPlan:
        """Return the plan in which gates share passes of a tile, by a search of this beam width."""
        gates = [run.gate for run in sharing.runs]
        found = sequences_of(
            self.qubits, gates, sharing.tile.qubits, sharing.tile.gates,
            beam_width=beam_width, phases=sharing.phases, memo=sharing.memo,
        )  # fmt: skip
        key = tuple(found[0]), tuple(found[1])
        if key not in sharing.plans:  # searches often find the same
            sharing.plans[key] = self._plan_of(sharing.width, sharing.runs, *found)
        return sharing.plans[key]

    def _plan_of(
        self,
        width: int,
        runs: Sequence[GateRun],
        fused: Sequence[Pass],
        groups: Sequence[SharedPass],
    ) -> CircuitPlan:
        """Return the plan of these passes and of the groups that share one, with their costs."""
        forms, passes = [], []
        for one in fused:
            gate = fused_gate([runs[number].gate for number in one.gates], one.qubits)
            forms.append(gate_form(self.qubits, gate.matrix, gate.targets, gate.controls))
            numbers = {number for run in one.gates for number in runs[run].numbers}
            passes.append(Pass(tuple(sorted(numbers)), one.qubits))
        seconds = [
            self.costs.of_group(self.qubits, forms[members], group.tile, self._item)
            for group, members in zip(groups, in_groups(groups), strict=True)
        ]
        return CircuitPlan(
            qubits=self.qubits, precision=self.precision, width=width, passes=tuple(passes),
            forms=tuple(forms), groups=tuple(groups), seconds=tuple(seconds),
            measured=self.costs.measured,
        )  # fmt: skip


def cheapest_passes(qubits: int, gates: Sequence[Gate], cost: Cost) -> tuple[int, list[Pass]]:
    """Return the width that gates are fused to for the least predicted time, and its passes.

    Widths are tried from the widest down. A narrower one hardly takes fewer passes, so the search
    ends where as many passes would cost more even if each were as cheap as any narrower one.
    """
    best: tuple[float, int, list[Pass]] | None = None
    for width in range(min(qubits, MAX_WIDTH), 0, -1):
        passes = fuse(qubits, gates, PassRules(width, cost))
        seconds = sum(cost(one.qubits) for one in passes)
        if best is None or seconds < best[0]:
            best = (seconds, width, passes)
        narrower = [tuple(range(qubits - other, qubits)) for other in range(1, width)]
        narrower += [tuple(range(other)) for other in range(1, width)]
        if narrower and len(passes) * min(map(cost, narrower)) > best[0]:
            break
    assert best is not None
    return best[1:]
