"""The tables of gates and circuits, from what their benchmarks wrote under docs/data/."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.recorded import Rows, plain_rows, read_rows
from tools.docs.shown import shown_columns
from workflow.tables.readable import ACCURACY, Column, markdown_table, number

GATES = "h200-gates.csv", "h200-gates-custatevec.csv"
"""Single gates on 28 qubits: ours, and those of cuStateVec, which may be of another run."""
CIRCUITS = (
    "h200-circuits.csv", "h200-gates-20.csv", "h200-gates-20-alone.csv",
    "h200-circuits-shared.csv", "h200-circuits-shared-20.csv",
)  # fmt: skip
"""Circuits on 28 qubits, and on 20, which a CPU can run too; then ours whose gates share passes."""
COSTS, SETTLING = "h200-gate-costs.csv", "h200-gate-settling.csv"


def gate_rows(data: Path) -> Rows:
    """Return the rows of all single gates."""
    return [row for name in GATES for row in read_rows(data / name)]


def circuit_rows(data: Path) -> Rows:
    """Return the rows of all circuits."""
    return [row for name in CIRCUITS for row in read_rows(data / name)]


def gates_table(data: Path) -> str:
    """Return the gates and circuits of `benchmarks.gates`, with what became of the norm."""
    state = [column for column in ACCURACY if column.field in ("norm_drift", "fidelity")]
    columns = [*shown_columns(), *state, Column("algorithm", "how")]
    rows = [*gate_rows(data), *circuit_rows(data)]
    return markdown_table(columns, [row for row in rows if row["time_us_p50"]])


def gate_costs_table(data: Path) -> str:
    """Return the microseconds of a pass, a column a width: without qubit 0 / with it."""
    return _by_width(plain_rows(data / COSTS), "precision", "qubits", _microseconds)


def settling_table(data: Path) -> str:
    """Return passes after some seconds, in copies of the state: without and with qubit 0."""
    return _by_width(plain_rows(data / SETTLING), "precision", "settle_s", _copies)


def _by_width(
    rows: list[dict[str, str]], first: str, second: str, shown: Callable[[dict[str, str]], str]
) -> str:
    """Return a line for each value of two columns, a column for each width of the gate."""
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        line = lines.setdefault((row[first], row[second]), {first: row[first], second: row[second]})
        before = line.get(row["width"])
        line[row["width"]] = shown(row) if before is None else f"{before} / {shown(row)}"
    columns = [Column(name, name) for name in (first, second)]
    columns += [
        Column(width, width, numeric=True) for width in dict.fromkeys(r["width"] for r in rows)
    ]
    return markdown_table(columns, list(lines.values()))


def _microseconds(row: dict[str, str]) -> str:
    return number(float(row["time_us"]))


def _copies(row: dict[str, str]) -> str:
    return number(float(row["copies"]))


def gate_cut_table(data: Path) -> str:
    """Return the truncation bias of tensor-core sums, and the error after its compensation."""
    headings = {
        "own": "bias in its own k-tile", "further": "in each later k-tile",
        "error": "error, not compensated", "drift": "norm, not compensated",
        "error_left": "error", "drift_left": "norm",
    }  # fmt: skip
    columns = [Column(name, name) for name in ("precision", "kind", "width", "inside")]
    columns += [Column(name, heading, _small, numeric=True) for name, heading in headings.items()]
    return markdown_table(columns, plain_rows(data / "h200-gate-cut.csv"))


def _small(text: str) -> str:
    return number(float(text), scientific=True)


GATE_TABLES: dict[str, Callable[[Path], str]] = {
    "h200-gates-all": gates_table,
    "h200-gate-costs": gate_costs_table,
    "h200-gate-settling": settling_table,
    "h200-gate-truncation": gate_cut_table,
}
