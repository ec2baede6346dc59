"""Our gates and circuits as candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argand import CircuitPlan, Gate, Precision, apply_gate
from argand.gates.prepared_gates import prepared_gates

from benchmarks.peers import Candidate


def ours(precision: Precision, plan: CircuitPlan, gates: Sequence[Gate]) -> Candidate:
    """Return a gate by `argand.apply_gate`, a circuit by its plan.

    The passes of a circuit are timed as `argand.run_circuit` times them: with their matrices at
    hand, as cuStateVec's are.
    """

    def prepare(state: Any) -> tuple[Any, ...]:
        given = state.astype(precision.output)
        return given, _apply(precision, plan, gates, given)

    def compute(state: Any, apply: Callable[[Any], Any]) -> Any:
        apply(state)
        return state

    return Candidate(
        "argand", precision, _described(plan), prepare, compute,
        input=precision.output, output=precision.output,
        predicted_us=1e6 * plan.predicted_seconds,
        widths=tuple(form.width for form in plan.forms),
    )  # fmt: skip


def _apply(
    precision: Precision, plan: CircuitPlan, gates: Sequence[Gate], state: Any
) -> Callable[[Any], Any]:
    if len(gates) > 1:
        return prepared_gates(state, plan.forms, precision, plan.groups)
    (gate,) = gates
    return lambda to: apply_gate(
        to, gate.matrix, gate.targets, controls=gate.controls, precision=precision
    )


def _described(plan: CircuitPlan) -> str:
    passes = "pass" if len(plan.groups) == 1 else "passes"
    shared = f" of {len(plan.passes)} gates" if len(plan.groups) < len(plan.passes) else ""
    widest = max(len(one.qubits) for one in plan.passes)
    return f"{len(plan.groups)} {passes}{shared} of up to {widest} qubits"
