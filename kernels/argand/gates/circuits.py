"""Circuits on a state vector: their plans, and what running them cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from argand.checks import as_integer, check_numbers, refuse_misaligned, shape_of
from argand.defaults import default_precision
from argand.device import Device, checked_device, cpu, gpu, is_cuda_array
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.gates.api import qubits_of, state_precision
from argand.gates.circuit_search import CircuitPlan, CircuitSearch
from argand.gates.costs import GateCosts
from argand.gates.diagonal_runs import diagonal_runs
from argand.gates.fusion import checked_gates
from argand.gates.gate import GateLike
from argand.gates.measure import measured_costs
from argand.gates.norms import fidelity_of, norm_of
from argand.gates.prepared_gates import prepared_gates
from argand.precision import Precision, get_precision

_MAX_QUBITS = 59
"""Qubits of the longest state whose bytes have addresses of 63 bits."""


@dataclass(frozen=True)
class CircuitRecord:
    """The cost of running a circuit, and its change of the norm.

    Attributes:
        plan: what was run.
        predicted_seconds, seconds: the time of all passes, their matrices at hand; on a GPU between
            events.
        norm_before, norm_after: the norm of the state, summed in fp64.
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
        """Relative change of the norm; NaN for a state of zeros."""
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
        qubits: qubits of the state.
        gates: `Gate` objects, or tuples of matrix, targets and maybe controls, in order.
        precision: that of the products, by default that of a complex64 state: fp32 on the CPU,
            3xfp16 on a GPU.
        device: where it will run; the CPU where none is given. A GPU on which no costs at this
            precision are known for states of this size is measured first, once, which takes seconds
            and compiles the kernels of all widths (`argand.measure_gate_costs`).
        width: the most qubits of a fused gate; None chooses it.
        costs: predicted costs, in place of those of the device.

    Raises ValueError for a gate that is wrong, by its number, or a width that is not positive.

    Example:
        >>> swaps = [argand.Gate([[0, 1], [1, 0]], (qubit,)) for qubit in range(4)]
        >>> len(argand.plan_circuit(4, swaps).passes)
        1
    """
    device = checked_device(device)
    qubits = as_integer(qubits, "qubits")
    if not 1 <= qubits <= _MAX_QUBITS:
        raise ValueError(f"qubits must be from 1 to {_MAX_QUBITS}, got {qubits}")
    if precision is None:
        precision = default_precision("gate", (), on_gpu=device.backend == "cuda")
    row = get_precision(precision)
    if width is not None and (width := as_integer(width, "width")) < 1:
        raise ValueError(f"width must be at least 1, got {width}")
    found = checked_gates(qubits, gates)
    if costs is not None and not isinstance(costs, GateCosts):
        raise TypeError(
            "costs must be those that argand.measure_gate_costs returns, "
            f"got {type(costs).__name__}"
        )
    if costs is None:
        costs = measured_costs(row, device, qubits)
    return CircuitSearch(qubits, diagonal_runs(qubits, found), row, costs).cheapest(width)


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

    The host waits for the passes and for the norms, which a CUDA graph cannot: it may capture an
    `argand.PreparedCircuit`.

    Raises ValueError as `argand.apply_gate` does, and for a plan for another state or precision,
    and RuntimeError, with nothing done, where the state's stream is captured.

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
    if is_cuda_array(state):
        _refuse_capture(state.device.id)
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
    if reference is not None:
        if shape_of(reference, "reference") != state.shape:
            raise ValueError(f"reference must have shape {state.shape}, got {reference.shape}")
        check_numbers("reference", reference, flags=True)
    refuse_misaligned("reference", reference)
    with state.device if is_cuda_array(state) else nullcontext():
        before = norm_of(state)
        seconds = _timed(state, plan)
        after = norm_of(state)
        fidelity = None if reference is None else fidelity_of(reference, state)
    return CircuitRecord(plan, plan.predicted_seconds, seconds, before, after, fidelity)


def _refuse_capture(device: int) -> None:
    """Raise RuntimeError where CuPy's current stream of a GPU is captured, which then goes on."""
    import cupy

    from argand.runtime.memory.captured_memory import is_captured

    if is_captured(cupy.cuda.get_current_stream(device).ptr):
        raise RuntimeError(
            "run_circuit waits for its passes and for the state's norm, so that no CUDA graph can "
            "capture it: make an argand.PreparedCircuit of argand.plan_circuit before the capture, "
            "and call that in it"
        )


def _timed(state: Any, plan: CircuitPlan) -> float:
    """Apply the passes, whose matrices are made ready before the clock starts."""
    if not is_cuda_array(state):
        call = prepared_gates(state, plan.forms, plan.precision)
        started = time.perf_counter()
        call(state)
        return time.perf_counter() - started
    from argand.runtime.measuring.timing import queued_seconds

    call = prepared_gates(state, plan.forms, plan.precision, plan.groups)
    return queued_seconds([partial(call, state)], 1)[0]
