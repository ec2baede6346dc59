"""The command that measures the costs of gates' passes on the current GPU, and keeps them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from argand.device import DeviceError, gpu
from argand.gates.measure import measure_gate_costs
from argand.precision import PRECISIONS
from argand.runtime.plans.tuning import require_gpu


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure gates at each precision named; their table goes to standard output."""
    parser = argparse.ArgumentParser(
        prog="python -m argand tune gates",
        description="Measure the costs of gates' passes over a state on this GPU, and keep them.",
    )
    parser.add_argument("qubits", nargs="+", type=int, help="of a state")
    parser.add_argument("--precision", default="fp32,3xfp16", help="some precisions, by commas")
    given = parser.parse_args(arguments)
    names = given.precision.split(",")
    unknown = [name for name in names if name not in PRECISIONS]
    if unknown:
        parser.error(f"precision must be one of {list(PRECISIONS)}, got {unknown[0]!r}")
    lines = ["| qubits | precision | width | low targets (copies) | others (copies) |",
             "| ---: | --- | ---: | ---: | ---: |"]  # fmt: skip
    try:
        require_gpu()
        for qubits in given.qubits:
            for name in names:
                costs = measure_gate_costs(name, gpu(0), qubits=qubits)
                for width, (high, low) in enumerate(costs.widths, 1):
                    lines.append(f"| {qubits} | {name} | {width} | {low:.3f} | {high:.3f} |")
                    print(lines[-1], file=sys.stderr, flush=True)
    except (ValueError, DeviceError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0
