"""Circuits on a state vector: gates fused to few passes by predicted time, and their record."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from argand.checks import as_integer, refuse_misaligned, shape_of
from argand.defaults import default_precision
from argand.device import Device, checked_device, cpu, gpu, is_cuda_array
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.gates.api import qubits_of, state_precision
from argand.gates.canonical import GateForm, gate_form
from argand.gates.costs import GateCosts
from argand.gates.fusion import Cost, Pass, checked_gates, fuse, fused_gate, passes_by_width
from argand.gates.gate import Gate
from argand.gates.measure import measured_costs
from argand.gates.norms import fidelity_of, norm_of
from argand.gates.plan import MOST_WIDTH
from argand.gates.prepared_gates import prepared_gates
from argand.gates.sequence_plan import WIDTH
from argand.gates.sequences import KEPT_TILES, Group, in_groups, sequences_of
from argand.precision import Precision, get_precision

if TYPE_CHECKING:
    from argand.typing import GateLike

_MOST_QUBITS = 59
"""Qubits of the longest state whose bytes have addresses of 63 bits."""
_MOST_KEPT = 16
"""Beams of the search that fuses a circuit; 64 of them hardly find fewer passes."""
_FIRST_KEPT = 4
"""Beams of the search that compares sizes of tiles."""
_AS_FAST = 1.1
"""Largest ratio of two short searches' predicted times of which long ones may change the order:
they take up to a tenth off."""
_KEPT_GATES = 16_000
"""Largest product of gates and beams: the search takes up to a millisecond each."""


@dataclass(frozen=True)
class CircuitPlan:
    """The passes that run a circuit: its gates, fused.

    Attributes:
        qubits: of the state.
        precision: of the products.
        width: the most qubits that gates were fused to.
        passes: which gates of the circuit each fused gate is.
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
    groups: tuple[Group, ...] = field(repr=False)
    seconds: tuple[float, ...] = field(repr=False)
    measured: bool

    @property
    def predicted_seconds(self) -> float:
        """Sum of what all passes are predicted to take."""
        return sum(self.seconds)

    def __str__(self) -> str:
        counts = passes_by_width(self.passes)
        shown = ", ".join(f"{count} on {width}" for width, count in counts.items())
        passes = "pass" if len(self.groups) == 1 else "passes"
        shared = f", {len(self.passes)} fused gates" if len(self.groups) < len(self.passes) else ""
        gates = sum(len(one.gates) for one in self.passes)
        source = "measured here" if self.measured else "the table's costs"
        return (
            f"{gates} gates on {self.qubits} qubits at {self.precision.name}: "
            f"{len(self.groups)} {passes}{shared} ({shown} qubits), "
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
class CircuitRecord:
    """The cost of running a circuit, and its change of the norm.

    Attributes:
        plan: what was run.
        predicted_seconds, seconds: of all passes, their matrices at hand; on a GPU between events.
        norm_before, norm_after: of the state, summed in fp64.
        fidelity: |<reference|state>|^2 over both norms squared, where a reference was given.
    """

    plan: CircuitPlan
    predicted_seconds: float
    seconds: float
    norm_before: float
    norm_after: float
    fidelity: float | None

    @property
    def norm_drift(self) -> float:
        """How far the norm went from what it was, relatively; NaN for a state of zeros."""
        if self.norm_before == 0:
            return float("nan")
        return abs(self.norm_after / self.norm_before - 1)


def plan_circuit(
    qubits: int,
    gates: Sequence[GateLike],
    *,
    precision: str | Precision | None = None,
    device: Device | None = None,
    width: int | None = None,
    costs: GateCosts | None = None,
) -> CircuitPlan:
    """Fuse a circuit's gates for the least predicted time.

    Args:
        qubits: of the state.
        gates: `Gate` objects, or tuples of matrix, targets and maybe controls, in order.
        precision: of the products, by default that of a complex64 state: fp32 on the CPU, 3xfp16 on
            a GPU.
        device: where it will run; the CPU where none is given. A GPU on which no costs at this
            precision are known for states of this size is measured first, once, which takes seconds
            and compiles the kernels of all widths (`argand.measure_gate_costs`).
        width: the most qubits of a fused gate, where it is not to be chosen.
        costs: predicted costs, where they are not to be those of the device.

    Raises ValueError for a gate that is wrong, by its number, or a width that is not positive.

    Example:
        >>> swaps = [argand.Gate([[0, 1], [1, 0]], (qubit,)) for qubit in range(4)]
        >>> len(argand.plan_circuit(4, swaps).passes)
        1
    """
    device = checked_device(device)
    qubits = as_integer(qubits, "qubits")
    if not 1 <= qubits <= _MOST_QUBITS:
        raise ValueError(f"qubits must be from 1 to {_MOST_QUBITS}, got {qubits}")
    if precision is None:
        precision = default_precision("gate", (), on_gpu=device.backend == "cuda")
    row = get_precision(precision)
    if width is not None and (width := as_integer(width, "width")) < 1:
        raise ValueError(f"width must be at least 1, got {width}")
    found = checked_gates(qubits, gates)
    if costs is None:
        costs = measured_costs(row, device, qubits)
    known = costs
    item = 16 if row.output == "complex128" else 8

    def cost(targets: tuple[int, ...]) -> float:
        return known.seconds(qubits, targets, item)

    if width is None:
        width, passes = cheapest_passes(qubits, found, cost)
    else:
        passes = fuse(qubits, found, width, cost)

    def plan_of(passes: Sequence[Pass], groups: Sequence[Group]) -> CircuitPlan:
        forms = []
        for one in passes:
            gate = fused_gate([found[number] for number in one.gates], one.qubits)
            forms.append(gate_form(qubits, gate.matrix, gate.targets, gate.controls))
        seconds = [
            known.of_group(qubits, forms[members], group.tile, item)
            for group, members in zip(groups, in_groups(groups), strict=True)
        ]
        return CircuitPlan(
            qubits, row, width, tuple(passes), tuple(forms), tuple(groups), tuple(seconds),
            known.measured,
        )  # fmt: skip

    # The search knows only the qubits of a pass. The forms show which passes need no products.
    plans = [plan_of(passes, [Group(1)] * len(passes))]
    shared = [
        (plan_of(*sequences_of(qubits, found, tile.qubits, tile.gates, kept=_FIRST_KEPT)), tile)
        for tile in known.sequences
        if width >= WIDTH and qubits >= tile.qubits
    ]
    plans += [plan for plan, _ in shared]
    kept = min(_MOST_KEPT, _KEPT_GATES // max(1, len(found)))
    # Long searches are of the kinds that a short one found to be about as fast as the fastest.
    most = _AS_FAST * min(plan.predicted_seconds for plan in plans)
    if kept > 1 and plans[0].predicted_seconds <= most:
        passes = fuse(qubits, found, width, cost, kept=kept)
        plans.append(plan_of(passes, [Group(1)] * len(passes)))
    plans += [
        plan_of(*sequences_of(qubits, found, tile.qubits, tile.gates, kept=beginnings))
        for plan, tile in shared
        if plan.predicted_seconds <= most
        for beginnings in KEPT_TILES
    ]
    return min(plans, key=lambda plan: plan.predicted_seconds)


def cheapest_passes(qubits: int, gates: Sequence[Gate], cost: Cost) -> tuple[int, list[Pass]]:
    """Return the width that gates are fused to for the least predicted time, and its passes.

    From the widest down: fewer qubits hardly take fewer passes, so it ends where so many of them
    would cost more even if each were as cheap as any of that width.
    """
    best: tuple[float, int, list[Pass]] | None = None
    for width in range(min(qubits, MOST_WIDTH), 0, -1):
        passes = fuse(qubits, gates, width, cost)
        seconds = sum(cost(one.qubits) for one in passes)
        if best is None or seconds < best[0]:
            best = (seconds, width, passes)
        narrower = [tuple(range(qubits - other, qubits)) for other in range(1, width)]
        narrower += [tuple(range(other)) for other in range(1, width)]
        if narrower and len(passes) * min(map(cost, narrower)) > best[0]:
            break
    assert best is not None
    return best[1:]


def run_circuit(
    state: Any,
    gates: Sequence[GateLike] | CircuitPlan,
    *,
    precision: str | Precision | None = None,
    reference: Any = None,
) -> CircuitRecord:
    """Apply a circuit to a state in place.

    Args:
        state: (2^n,), as in `argand.apply_gate`.
        gates: as in `plan_circuit`, or a plan of it.
        precision: as in `argand.apply_gate`; with a plan the plan's.
        reference: (2^n,), the state that it should become, for the fidelity.

    Raises ValueError as `argand.apply_gate` does, and for a plan for another state or precision.

    Example:
        >>> state = np.array([1, 0, 0, 0], np.complex64)
        >>> record = argand.run_circuit(state, [argand.Gate([[0, 1], [1, 0]], (0,), controls=(1,))])
        >>> state
        array([1.+0.j, 0.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    if has_foreign(state, reference):
        arrays = {"state": state, "reference": reference}
        record: CircuitRecord = call_on_foreign(
            run_circuit, arrays, written="state", gates=gates, precision=precision
        )
        return record
    if isinstance(gates, CircuitPlan):
        plan = gates
        if precision is not None and get_precision(precision) != plan.precision:
            raise ValueError(f"the plan is for {plan.precision.name}, got precision {precision!r}")
        row, qubits = state_precision(state, plan.precision), qubits_of(state)
    else:
        row, qubits = state_precision(state, precision), qubits_of(state)
        device = gpu(state.device.id) if is_cuda_array(state) else cpu()
        plan = plan_circuit(qubits, gates, precision=row, device=device)
    if plan.qubits != qubits:
        raise ValueError(f"the plan is for {plan.qubits} qubits, the state has {qubits}")
    if reference is not None and shape_of(reference, "reference") != state.shape:
        raise ValueError(f"reference must have shape {state.shape}, got {reference.shape}")
    refuse_misaligned("reference", reference)
    with state.device if is_cuda_array(state) else nullcontext():
        before = norm_of(state)
        seconds = _timed(state, plan)
        after = norm_of(state)
        fidelity = None if reference is None else fidelity_of(reference, state)
    return CircuitRecord(plan, plan.predicted_seconds, seconds, before, after, fidelity)


def _timed(state: Any, plan: CircuitPlan) -> float:
    """Apply the passes, whose matrices are made ready before the clock starts."""
    if not is_cuda_array(state):
        call = prepared_gates(state, plan.forms, plan.precision)
        started = time.perf_counter()
        call(state)
        return time.perf_counter() - started
    from argand.runtime.timing import queued_seconds

    call = prepared_gates(state, plan.forms, plan.precision, plan.groups)
    return queued_seconds([partial(call, state)], 1)[0]
