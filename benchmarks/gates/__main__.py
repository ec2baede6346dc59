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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from argand import PRECISIONS, CircuitPlan, Gate, Precision, plan_circuit
from argand.runtime.measuring.ceilings import measure_ceilings

from benchmarks.gates.check import check, evolved, random_state
from benchmarks.gates.circuits import CIRCUITS, placements, random_unitary
from benchmarks.gates.ours import ours
from benchmarks.harness.measuring import Bench, Work, chosen, chosen_device, parser
from benchmarks.harness.rows import Report
from benchmarks.peers import benchmark_names, candidates
from workflow.records import BenchmarkRecord


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
    """Yield the rows of one gate or circuit, on one random state, each measured when asked."""
    qubits, device = arguments.qubits, bench.device
    state = random_state(qubits, device, arguments.seed)
    exact = cache(partial(evolved, state, gates))
    assess = partial(check, state, gates, device.backend, exact=exact)

    @cache
    def planned(precision: Precision) -> CircuitPlan:
        return plan_circuit(qubits, gates, precision=precision, device=device)

    # The same nominal work as ours, so that speedups are of times.
    work = _work(label, qubits, planned(PRECISIONS["3xfp16"]), gates)
    peers = candidates("gates", device.backend, qubits=qubits, gates=gates, device=device)
    for peer in chosen(peers, arguments):
        yield bench.run(peer, work, [state], assess)
    for row in rows:
        plan = planned(row)
        yield bench.run(ours(row, plan, gates), _work(label, qubits, plan, gates), [state], assess)


def _work(label: str, qubits: int, plan: CircuitPlan, gates: Sequence[Gate]) -> Work:
    """Return operations of the gates as they were given, the state read and written once a pass."""
    flops = sum(8 * 2.0**qubits * 2 ** len(gate.targets) for gate in gates)
    moved = 16 * 2.0**qubits * len(plan.groups)
    return GateWork({"batch": len(gates), "n": 2**qubits}, flops, moved, "gate", label)


if __name__ == "__main__":
    sys.exit(main())
