"""Gates and circuits on a state vector: ours at each precision and cuStateVec, in one run.

    python -m benchmarks.gates --qubits 28 --precisions 3xfp16 --csv out.csv
    python -m benchmarks.gates --qubits 28 --widths 6,7 --circuits none

Gates are random unitaries of each width at five placements (low, mid, high, spread, random).
Circuits are fused by `argand.plan_circuit`; cuStateVec runs them fused to each width that it may
profit from, and each is a row; Aer runs those of states that a CPU can hold. Gates are checked by
the norm and against fp64 on columns spread over the state, circuits on all of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from argand import PRECISIONS, CircuitPlan, Device, Gate, Precision, plan_circuit
from argand.gates.api import apply_form
from argand.gates.circuits import norm_of, overlap_of, prepared_gates
from argand.runtime.ceilings import measure_ceilings

from benchmarks.gates.circuits import CIRCUITS, placements, random_unitary
from benchmarks.harness.measuring import (
    Bench,
    Work,
    array_module,
    chosen,
    chosen_device,
    parser,
)
from benchmarks.harness.rows import Report
from benchmarks.harness.samples import on_host
from benchmarks.peers import Candidate, benchmark_names, candidates
from workflow.accuracy import Accuracy, assess_state, state_reference
from workflow.records import BenchmarkRecord

_COLUMNS = 1 << 12
"""Columns of a gate that are compared with fp64."""


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
    found = parser(__doc__, benchmark_names("gates"))
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
) -> Iterator[BenchmarkRecord]:  # fmt: skip
    """The rows of one gate or circuit, on the same random state, each measured when it is asked."""
    qubits, device = arguments.qubits, bench.device
    state = random_state(qubits, device, arguments.seed)
    exact = cache(partial(evolved, state, gates))
    assess = partial(check, state, gates, device.backend, exact=exact)
    # The same nominal work as ours, so that speedups are of times.
    plan = plan_circuit(qubits, gates, device=device)
    work = _work(label, qubits, plan, gates)
    peers = candidates("gates", device.backend, qubits=qubits, gates=gates, device=device)
    for peer in chosen(peers, arguments):
        yield bench.run(peer, work, [state], assess)
    for row in rows:
        plan = plan_circuit(qubits, gates, precision=row, device=device)
        yield bench.run(ours(row, plan), _work(label, qubits, plan, gates), [state], assess)


def evolved(state: Any, gates: Sequence[Gate]) -> Any:
    """The state after a circuit at fp64."""
    found = state.astype(np.complex128)
    plan = plan_circuit(int(state.size).bit_length() - 1, gates, precision="fp64")
    for form in plan.forms:
        apply_form(found, form, PRECISIONS["fp64"])
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


def ours(precision: Precision, plan: CircuitPlan) -> Candidate:
    """Our gates by a plan, their matrices at hand, as cuStateVec's are."""

    def prepare(state: Any) -> tuple[Any, ...]:
        given = state.astype(precision.output)
        return given, prepared_gates(given, plan.forms, precision)

    def compute(state: Any, apply: Callable[[Any], None]) -> Any:
        apply(state)
        return state

    return Candidate(
        "argand", precision, _described(plan), prepare, compute,
        input=precision.output, output=precision.output,
        predicted_us=1e6 * plan.predicted_seconds, widths=_widths_of(plan),
    )  # fmt: skip


def _widths_of(plan: CircuitPlan) -> tuple[int, ...]:
    return tuple(form.width for form in plan.forms)


def _described(plan: CircuitPlan) -> str:
    passes = "pass" if len(plan.passes) == 1 else "passes"
    widest = max(len(one.qubits) for one in plan.passes)
    return f"{len(plan.passes)} {passes} of up to {widest} qubits"


def check(
    before: Any, gates: Sequence[Gate], backend: str, after: Any, candidate: Candidate,
    *, exact: Callable[[], Any],
) -> Accuracy:  # fmt: skip
    """One gate: sampled columns against fp64, and the norm of all. A circuit: all of ``exact``."""
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
            widths=candidate.widths, backend=backend,
        )  # fmt: skip
        # Of the whole state there is the norm alone.
        found = replace(found, fidelity=None, reference="sampled", reference_rows=len(rest))
    else:
        found = _against(exact(), after, precision, candidate.widths, backend)
    drift = abs(norm_of(after) / norm_of(before) - 1)
    assert found.worst_bound is not None
    if not drift <= found.worst_bound:
        reason = f"the norm drifted by {drift:.2e}, the bound is {found.worst_bound:.2e}"
        found = replace(found, verdict="wrong", verified=False, reason=reason)
    return replace(found, norm_drift=drift)


def _against(
    truth: Any, after: Any, precision: Precision, widths: Sequence[int], backend: str
) -> Accuracy:
    """The whole state against one at fp64, part by part: on a GPU little memory is left."""
    error = scale = 0.0
    fidelity = (abs(overlap_of(truth, after)) / (norm_of(truth) * norm_of(after))) ** 2
    step = 1 << 24
    for start in range(0, truth.size, step):
        part = truth[start : start + step]
        error += norm_of(after[start : start + step] - part) ** 2
        scale += norm_of(part) ** 2
    # Errors and bound of a vector of two: what was right, and how far it is from that.
    length = np.sqrt(scale)
    reference = state_reference(np.array([length, 0], np.complex128))
    found = np.array([length, np.sqrt(error)], np.complex128)
    judged = assess_state(reference, found, precision, widths=widths, backend=backend)
    return replace(judged, fidelity=fidelity)


if __name__ == "__main__":
    sys.exit(main())
