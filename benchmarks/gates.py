"""Gates and circuits on a state vector: ours at each precision and cuStateVec, in one run.

    python -m benchmarks.gates --qubits 28 --precisions 3xfp16 --csv out.csv
    python -m benchmarks.gates --qubits 28 --widths 6,7 --circuits none

Gates are random unitaries of each width at five placements (low, mid, high, spread, random).
Circuits are fused by `argand.plan_circuit`; cuStateVec runs them fused to each width that it may
profit from, and each is a row. Results are checked on columns spread over the state against fp64,
circuits by the norm and against the same circuit at fp64 where the memory allows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, CircuitPlan, Device, Gate, Precision, plan_circuit
from argand.ceilings import measure_ceilings
from argand.circuits import norm_of
from argand.gate_forms import GateForm, gate_form
from argand.gates import apply_form

from benchmarks import custatevec
from benchmarks.gate_circuits import CIRCUITS, placements, random_unitary
from benchmarks.measuring import (
    Bench,
    Candidate,
    Work,
    array_module,
    chosen,
    chosen_device,
    parser,
)
from benchmarks.rows import Report
from benchmarks.samples import on_host
from workflow.accuracy import Accuracy, assess_state, state_reference

PEERS = ("custatevec",)
_COLUMNS = 1 << 12
"""Columns of a gate that are compared with fp64."""
_PEER_WIDTHS = (2, 3, 4, 5)
"""Widths that circuits are fused to for cuStateVec: from 5 on its gates take twice as long."""


@dataclass(frozen=True)
class GateWork(Work):
    """A gate or circuit, called by its name."""

    label: str = ""

    @property
    def name(self) -> str:
        """The case in one word."""
        return self.label


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 where a result of ours did not verify."""
    arguments = _parser().parse_args(argv)
    device = chosen_device(arguments.device)
    bench = Bench.of(device, measure_ceilings(device), arguments)
    report = Report(arguments.csv)
    rows = [PRECISIONS[name] for name in arguments.precisions]
    qubits, rng = arguments.qubits, np.random.default_rng(arguments.seed)
    for width in arguments.widths:
        for where, targets in placements(qubits, width, rng).items():
            gate = Gate(random_unitary(rng, width), tuple(targets))
            report.add(_run(bench, arguments, f"gate-{qubits}q-{width}-{where}", [gate], rows))
    for name in arguments.circuits:
        gates = CIRCUITS[name](qubits, rng)
        report.add(_run(bench, arguments, f"circuit-{qubits}q-{name}", gates, rows))
    return report.status


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__, PEERS)
    found.formatter_class = argparse.RawDescriptionHelpFormatter
    found.add_argument("--qubits", type=int, default=28)
    found.add_argument("--widths", type=_widths, default=list(range(1, 8)), help="of single gates")
    found.add_argument("--circuits", type=_circuits, default=list(CIRCUITS), help="or none")
    return found


def _widths(text: str) -> list[int]:
    if text == "none":
        return []
    if not all(part.isdigit() and int(part) > 0 for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"widths must be positive numbers, got {text!r}")
    return [int(part) for part in text.split(",")]


def _circuits(text: str) -> list[str]:
    names = [] if text == "none" else text.split(",")
    if any(name not in CIRCUITS for name in names):
        raise argparse.ArgumentTypeError(f"circuits must be of {list(CIRCUITS)}, got {text!r}")
    return names


def _run(
    bench: Bench, arguments: argparse.Namespace, label: str, gates: list[Gate],
    rows: Sequence[Precision],
) -> list[Any]:  # fmt: skip
    """The rows of one gate or circuit, on the same random state."""
    qubits, device = arguments.qubits, bench.device
    state = random_state(qubits, device, arguments.seed)
    found = []
    for row in rows:
        plan = plan_circuit(qubits, gates, precision=row, device=device)
        assess = partial(check, state, gates, bench.device.backend)
        work = _work(label, qubits, plan, gates)
        found.append(bench.run(ours(row, plan, device), work, [state], assess))
    for peer in chosen(available(device, qubits, gates), arguments):
        # The same nominal work as ours, so that speedups are of times.
        plan = plan_circuit(qubits, gates, device=device)
        assess = partial(check, state, gates, bench.device.backend)
        found.append(bench.run(peer, _work(label, qubits, plan, gates), [state], assess))
    return found


def random_state(qubits: int, device: Device, seed: int) -> Any:
    """2^qubits normal amplitudes of norm 1, complex64."""
    arrays = array_module(device)
    parts = arrays.random.default_rng(seed).standard_normal((2**qubits, 2), dtype=arrays.float32)
    state = parts.view(arrays.complex64)[:, 0]
    state /= arrays.float32(norm_of(state))
    return state


def _work(label: str, qubits: int, plan: CircuitPlan, gates: Sequence[Gate]) -> Work:
    """Operations of the gates as they were given, the state read and written once a pass."""
    flops = sum(8 * 2.0**qubits * 2 ** len(gate.targets) for gate in gates)
    moved = 16 * 2.0**qubits * len(plan.passes)
    return GateWork({"batch": len(gates), "n": 2**qubits}, flops, moved, "gate", label)


def ours(precision: Precision, plan: CircuitPlan, device: Device) -> Candidate:
    """Our gates by a plan."""

    def prepare(state: Any) -> tuple[Any, ...]:
        return (state.astype(precision.output),)

    def compute(state: Any) -> Any:
        for form in plan.forms:
            apply_form(state, form, precision)
        return state

    return Candidate(
        "argand", precision, _described(plan), prepare, compute,
        lambda state: state, input=precision.output, output=precision.output,
    )  # fmt: skip


def _described(plan: CircuitPlan) -> str:
    passes = "pass" if len(plan.passes) == 1 else "passes"
    widest = max(len(one.qubits) for one in plan.passes)
    return f"{len(plan.passes)} {passes} of up to {widest} qubits"


def available(device: Device, qubits: int, gates: Sequence[Gate]) -> list[Candidate]:
    """cuStateVec on a GPU, with circuits fused to each width that may be its best."""
    if device.backend == "cpu":
        return []
    widths: Sequence[int | None] = [None] if len(gates) == 1 else _PEER_WIDTHS
    return [_peer(qubits, gates, width, device) for width in widths]


def _peer(qubits: int, gates: Sequence[Gate], width: int | None, device: Device) -> Candidate:
    def prepare(state: Any) -> tuple[Any, ...]:
        import cupy

        library = custatevec.state_vector()
        forms = [gate_form(qubits, gate.matrix, gate.targets, gate.controls) for gate in gates]
        if width is not None:
            forms = list(plan_circuit(qubits, gates, device=device, width=width).forms)
        matrices = [cupy.asarray(form.matrix.astype(np.complex64)) for form in forms]
        return state.copy(), library, forms, matrices

    def compute(
        state: Any, library: custatevec.StateVector, forms: list[GateForm], matrices: list[Any]
    ) -> Any:
        for form, matrix in zip(forms, matrices, strict=True):
            library.apply(state, matrix, form.targets, form.controls)
        return state

    fused = "gate by gate" if width is None else f"fused to {width} qubits"
    return Candidate("custatevec", PRECISIONS["fp32"], fused, prepare, compute, lambda state: state)


def check(
    before: Any, gates: Sequence[Gate], backend: str, after: Any, candidate: Candidate
) -> Accuracy:
    """One gate: sampled columns against fp64, and the norm of all. A circuit: all of it."""
    qubits = int(before.size).bit_length() - 1
    precision = candidate.precision
    if len(gates) == 1:
        (gate,) = gates
        rng = np.random.default_rng(7)
        rest = rng.integers(0, 2**qubits, min(_COLUMNS, 2**qubits))
        settings = np.arange(2 ** len(gate.targets))
        offsets = sum(((settings >> bit) & 1) << target for bit, target in enumerate(gate.targets))
        rest &= ~sum(1 << target for target in gate.targets)
        places = np.asarray(offsets)[:, None] | rest
        wanted = gate.matrix @ on_host(before[places]).astype(np.complex128)
        found = assess_state(
            state_reference(wanted.reshape(-1)), on_host(after[places]).reshape(-1), precision,
            widths=[len(gate.targets)], backend=backend,
        )  # fmt: skip
        found = replace(found, reference="sampled", reference_rows=len(rest))
    else:
        truth = before.astype(np.complex128)
        plan = plan_circuit(qubits, gates, precision="fp64")
        for form in plan.forms:
            apply_form(truth, form, PRECISIONS["fp64"])
        found = _against(truth, after, precision, [form.width for form in plan.forms], backend)
    drift = abs(norm_of(after) / norm_of(before) - 1)
    if not drift <= found.bound:
        reason = f"the norm drifted by {drift:.2e}, the bound is {found.bound:.2e}"
        found = replace(found, verified=False, reason=reason)
    return replace(found, norm_drift=drift)


def _against(
    truth: Any, after: Any, precision: Precision, widths: Sequence[int], backend: str
) -> Accuracy:
    """The whole state against one at fp64, part by part: on a GPU little memory is left."""
    error = scale = 0.0
    step = 1 << 24
    for start in range(0, truth.size, step):
        part = truth[start : start + step]
        error += norm_of(after[start : start + step] - part) ** 2
        scale += norm_of(part) ** 2
    # Errors and bound of a vector of two: what was right, and how far it is from that.
    length = np.sqrt(scale)
    reference = state_reference(np.array([length, 0], np.complex128))
    found = np.array([length, np.sqrt(error)], np.complex128)
    return assess_state(reference, found, precision, widths=widths, backend=backend)


if __name__ == "__main__":
    sys.exit(main())
