"""The tables of gates and circuits, from what their benchmarks wrote under docs/data/."""

from __future__ import annotations

import csv
from pathlib import Path

from tools.docs.recorded import Rows, read_rows, shown_columns
from workflow.tables.readable import ACCURACY, Column, markdown_table, number

GATES = "h200-gates.csv"
"""Single gates on 28 qubits."""
CIRCUITS = ("h200-circuits.csv", "h200-gates-20.csv", "h200-gates-20-alone.csv")
"""Circuits on 28 qubits, and on 20, which a CPU can run too."""


def _gates_and_circuits(data: Path) -> Rows:
    return [row for name in (GATES, *CIRCUITS) for row in read_rows(data / name)]


def gate_costs_table(data: Path) -> str:
    """What passes take by `benchmarks.gate_costs`, a column a width: without qubit 0, with it."""
    with (data / "h200-gate-costs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        line = lines.setdefault(
            (row["precision"], row["qubits"]),
            {"precision": row["precision"], "qubits": row["qubits"]},
        )
        shown = number(float(row["time_us"]))
        before = line.get(row["width"])
        line[row["width"]] = shown if before is None else f"{before} / {shown}"
    widths = list(dict.fromkeys(row["width"] for row in rows))
    columns = [Column(name, name) for name in ("precision", "qubits")]
    columns += [Column(width, f"{width}", numeric=True) for width in widths]
    return markdown_table(columns, list(lines.values()))


def gates_table(data: Path) -> str:
    """Gates and circuits of `benchmarks.gates`, with what became of the norm."""
    state = [column for column in ACCURACY if column.field in ("norm_drift", "fidelity")]
    columns = [*shown_columns(), *state, Column("algorithm", "how")]
    rows = [row for row in _gates_and_circuits(data) if row["time_us_p50"]]
    return markdown_table(columns, rows)


def gate_cut_table(data: Path) -> str:
    """What `benchmarks.gate_cut` found that tensor cores cut, and what is left of it."""
    with (data / "h200-gate-cut.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    headings = {
        "own": "cut of a step", "further": "of each after it", "error": "error as it is",
        "drift": "norm", "error_left": "error given back", "drift_left": "norm, given back",
    }  # fmt: skip
    columns = [Column(name, name) for name in ("precision", "kind", "width", "inside")]
    columns += [Column(name, heading, _small, numeric=True) for name, heading in headings.items()]
    return markdown_table(columns, rows)


def _small(text: str) -> str:
    return number(float(text), scientific=True)
