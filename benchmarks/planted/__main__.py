"""The command: trials of some kinds, the rows printed, and written in the place of earlier ones."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from dataclasses import asdict

from argand import PRECISIONS

import benchmarks.planted
from benchmarks.harness.measuring import chosen_device
from benchmarks.harness.recorded import plain_rows
from benchmarks.harness.tables import Table, parser
from benchmarks.planted.campaign import PlantedRow, rows_for
from benchmarks.planted.cases import NAMES

CASES, SEED = 24, 1


def main(argv: Sequence[str] | None = None) -> int:
    """Plant; the exit status is 1 where a result failed before anything was planted."""
    arguments = _parser().parse_args(argv)
    device = chosen_device(arguments.device)
    table = Table(arguments.csv)
    if arguments.csv is not None and arguments.csv.exists():
        replaced = set(itertools.product(arguments.kinds, arguments.precisions))
        earlier = plain_rows(arguments.csv)
        table.rows += [row for row in earlier if (row["kind"], row["precision"]) not in replaced]
    failures = []
    for kind in arguments.kinds:
        found = rows_for(kind, arguments.precisions, device, arguments.cases, arguments.seed)
        for row, failed in found:
            print(line_of(row), flush=True)
            failures += [f"{kind} {row.precision}: {reason}" for reason in failed]
            table.add([asdict(row)])
    for failure in failures:
        print(f"not verified as it is: {failure}")
    return int(bool(failures))


def line_of(row: PlantedRow) -> str:
    """Return a row on a line."""
    what = f"{row.kind:25} {row.reference:8} {row.precision:7} {row.cases:3} cases"
    if row.unproven == row.cases:
        return f"{what}, none provable at this precision"
    depths = (row.largest, row.typical, row.random, row.whole)
    shown = " ".join("   -" if depth is None else f"{depth:4.1f}" for depth in depths)
    unproven = f", {row.unproven} not provable" if row.unproven else ""
    missed = f"; missed {row.missed}" if row.missed else ""
    return f"{what}{unproven}, caught {row.caught} of {row.tries}, d {shown}{missed}"


def _parser() -> argparse.ArgumentParser:
    found = parser(benchmarks.planted.__doc__)
    found.add_argument("--kinds", nargs="+", choices=NAMES, default=NAMES)
    found.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    found.add_argument("--device", choices=["auto", "cpu", "cuda"], default="cpu")
    found.add_argument("--cases", type=int, default=CASES, help="workloads of each kind")
    found.add_argument("--seed", type=int, default=SEED)
    return found


if __name__ == "__main__":
    sys.exit(main())
