"""Performance tables for tests of the comparison."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from workflow.records import Record

ROW: dict[str, str] = {
    "workload": "w", "kind": "gemm", "implementation": "argand", "precision": "fp32",
    "device": "d", "m": "8", "n": "9", "k": "10", "iterations": "20",
    "time_us_p20": "9", "time_us_p50": "10", "time_us_p80": "12", "rel_frobenius": "1e-7",
    "verified": "true", "seed": "1", "versions": "argand 0.1.0; numpy 2.4.6",
}  # fmt: skip
"""One verified row of ours."""


def times(factor: float) -> dict[str, str]:
    """The times of `ROW` multiplied."""
    names = ("time_us_p20", "time_us_p50", "time_us_p80")
    return {name: str(float(ROW[name]) * factor) for name in names}


def write_table(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    """Write rows as a performance table with every column."""
    path.parent.mkdir(parents=True, exist_ok=True)
    more = [name for row in rows for name in row if name not in Record.columns_in_order()]
    with path.open("w", newline="") as file:
        columns = [*Record.columns_in_order(), *dict.fromkeys(more)]
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path
