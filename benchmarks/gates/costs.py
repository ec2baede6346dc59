"""Times of passes of gates of each width on this GPU: the costs that circuits are planned by.

    python -m benchmarks.gates.costs --csv h200-gate-costs.csv
    python -m benchmarks.gates.costs --precisions 3xfp16 --qubits 26 --settle 0 0.1 0.3 1

Measures as `argand.measure_gate_costs` does, keeps what it finds for later plans (the last where
several times to settle are given), and writes a row for each precision, size of the state, width
and side of a chunk. Beside what was measured stands what is predicted where nothing is: the table
of `argand.gates.costs`, found on an H200 at 26 qubits. Predicted and actual times of circuits stand
in the rows of `benchmarks.gates`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from argand import PRECISIONS, Device, Precision, measure_gate_costs
from argand.gates.costs import table_costs
from argand.gates.measure import SETTLE_SECONDS

from benchmarks.harness.measuring import chosen_device
from benchmarks.harness.tables import Table, parser

_QUBITS = (20, 26)


@dataclass(frozen=True)
class CostRow:
    """Passes of one width at one precision.

    Attributes:
        qubits: qubits of the state.
        inside: whether qubit 0 is a target.
        settle_s: seconds for which each pass ran before the clock started.
        time_us: time of a pass.
        predicted_us: the same by the table, without a measurement.
        copies: the same without a launch, in copies of the state.
        gbytes_per_s: the state read and written once a pass.
    """

    precision: str
    qubits: int
    width: int
    inside: bool
    settle_s: float
    time_us: float
    predicted_us: float
    copies: float
    gbytes_per_s: float


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every precision."""
    arguments = _parser().parse_args(argv)
    device = chosen_device("cuda")
    table = Table(arguments.csv)
    for name, qubits, settle in product(arguments.precisions, arguments.qubits, arguments.settle):
        found = list(measured(PRECISIONS[name], device, qubits, settle))
        each = [f"{outside.copies:.2f}/{inside.copies:.2f}" for outside, inside in
                zip(found[::2], found[1::2], strict=True)]  # fmt: skip
        table.add(found, f"{name:7} {qubits} qubits: {' '.join(each)} copies after {settle:g} s")
    return 0


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--precisions", nargs="+", choices=list(PRECISIONS), default=[*PRECISIONS])
    found.add_argument("--qubits", nargs="+", type=int, default=_QUBITS, help="of the state")
    found.add_argument(
        "--settle", nargs="+", type=float, default=[SETTLE_SECONDS],
        help="seconds of a pass before it is timed",
    )  # fmt: skip
    return found


def measured(precision: Precision, device: Device, qubits: int, settle: float) -> Iterator[CostRow]:
    """Yield a row for each width, without qubit 0 and with it."""
    table = table_costs(precision, device)
    costs = measure_gate_costs(precision, device, qubits=qubits, settle=settle)
    item = 16 if precision.output == "complex128" else 8
    for width, both in enumerate(costs.widths, start=1):
        for inside, copies in zip((False, True), both, strict=True):
            targets = range(width) if inside else range(1, 1 + width)
            seconds = costs.seconds(qubits, targets, item)
            rate = 2 * item * 2.0**qubits / seconds / 1e9
            predicted = table.seconds(qubits, targets, item)
            yield CostRow(
                precision.name, qubits, width, inside, settle, 1e6 * seconds, 1e6 * predicted,
                copies, rate,
            )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
