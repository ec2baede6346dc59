"""Gates of drawn width, placement and controls on states of drawn size."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Gate, Precision, plan_circuit
from argand.device import gpu
from argand.gates.canonical import gate_form
from argand.gates.costs import table_costs
from argand.gates.direct import near_targets
from argand.gates.heuristics import candidate_plans
from argand.gates.layout import tile_columns
from argand.gates.plan import GatePlan
from argand.gates.source import gate_source

from benchmarks.gates import check as gates_check
from benchmarks.gates.circuits import random_unitary
from benchmarks.gates.ours import ours
from benchmarks.peers import Candidate, candidates
from benchmarks.sweep.case import Assess, Case

_PRECISIONS = ("3xfp16", "tf32", "fp32")


class GateCase(Case):
    """One gate on a whole state."""

    in_place = True

    def __init__(self, qubits: int, gate: Gate) -> None:
        #: The state's qubits, and the gate.
        self.qubits, self.gate = qubits, gate
        self.operation, self.shape = "gates", f"{qubits} qubits, targets {_words(gate.targets)}"
        self.kind = f"width {len(gate.targets)}"
        if gate.controls:
            self.shape += f", controls {_words(gate.controls)}"
            self.kind += f", {len(gate.controls)} controls"
        self.flops = 8 * 2.0 ** (qubits + len(gate.targets))
        self.bytes_moved = 16 * 2.0**qubits

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return a random state of norm 1."""
        return (gates_check.random_state(self.qubits, device, seed),)

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.apply_gate` at each precision that is measured."""
        found = []
        for name in _PRECISIONS:
            # One gate is one pass, whatever it costs: no need to measure that.
            row = PRECISIONS[name]
            costs = table_costs(row, device)
            plan = plan_circuit(self.qubits, [self.gate], precision=row, costs=costs)
            found.append(ours(row, plan, [self.gate]))
        return found

    def kernels(self, device: Device) -> list[tuple[str, str]]:
        """Return source and target of the gate's kernel at each precision."""
        from argand.gates.gpu import plan_for

        gate = self.gate
        form = gate_form(self.qubits, gate.matrix, gate.targets, gate.controls)
        plans = [plan_for(self.qubits, form, PRECISIONS[name], device) for name in _PRECISIONS]
        return [(gate_source(plan), device.require_arch().target) for plan in plans if plan]

    def plans(self, candidate: Candidate, inputs: tuple[Any, ...]) -> list[GatePlan]:
        """Return the kernels of the gate's width whose tiles fit; none where there is but one."""
        row, targets = candidate.precision, sorted(self.gate.targets)
        device = gpu(inputs[0].device.id)
        found = candidate_plans(
            row, device.require_arch(), width=len(targets), targets_qubit0=targets[0] == 0,
            near=len(near_targets(targets)),
        )  # fmt: skip
        columns = 1 << len(tile_columns(self.qubits, targets, self.gate.controls, found[0].item))
        found = [plan for plan in found if plan.columns <= columns]
        return found if len(found) > 1 else []

    def with_plan(self, plan: GatePlan) -> AbstractContextManager[object]:
        """Return a context in which gates take this plan."""
        from argand.gates.gpu import PLAN_OVERRIDE

        return PLAN_OVERRIDE.use(plan)

    def peers(self, device: Device) -> list[Candidate]:
        """Return the libraries' gates."""
        return candidates(
            "gates", device.backend, qubits=self.qubits, gates=[self.gate], device=device
        )

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares sampled columns with fp64, and the norm of the state."""
        exact = partial(gates_check.evolved, operands[0], [self.gate])
        return partial(gates_check.check, operands[0], [self.gate], device.backend, exact=exact)

    def peer_class(self, precision: Precision) -> str:
        """Return fp32's: cuStateVec has no other, and 3xfp16 is of its accuracy."""
        return "fp32" if precision.name in ("fp32", "3xfp16") else precision.peer_class


def _words(qubits: Sequence[int]) -> str:
    return " ".join(map(str, qubits))


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 20 to 30 qubits, 1 to 7 targets and up to 3 controls, each number alike often.

    Half of the gates have neighbouring targets, the others any; half have controls.
    """
    found: list[Case] = []
    for _ in range(cases):
        qubits, width = int(rng.integers(20, 31)), int(rng.integers(1, 8))
        controls = int(rng.integers(1, 4)) if rng.random() < 0.5 else 0
        order = rng.permutation(qubits)
        if rng.random() < 0.5:
            first = int(rng.integers(0, qubits - width + 1))
            targets = np.arange(first, first + width)
            order = np.concatenate([targets, [q for q in order if q not in targets]])
        found.append(GateCase(qubits, Gate(
            random_unitary(rng, width), tuple(map(int, order[:width])),
            tuple(map(int, order[width : width + controls])),
        )))  # fmt: skip
    return found
