"""The tables of gates and circuits, from what their benchmarks wrote under docs/data/."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.recorded import Rows, beside, plain_rows, read_rows, timed_rows
from tools.docs.shown import text_table
from workflow.tables.readable import ACCURACY, PERFORMANCE, Column, markdown_table, number

GATES = "h200-gates.csv"
"""Single gates on 28 qubits: ours and cuStateVec's."""
CIRCUITS = "h200-circuits.csv", "h200-circuits-20.csv"
"""Circuits on 28 qubits, and on 20, which a CPU can run too."""
_OF_CIRCUITS = (
    "workload", "implementation", "time_us_p50", "predicted_us", "gbytes_per_s", "limit_fraction",
    "rel_frobenius", "bound",
)  # fmt: skip
COSTS, SETTLING = "h200-gate-costs.csv", "h200-gate-settling.csv"


def gate_rows(data: Path) -> Rows:
    """Return the rows of all single gates."""
    return read_rows(data / GATES)


def circuit_rows(data: Path) -> Rows:
    """Return the rows of all circuits."""
    return [row for name in CIRCUITS for row in read_rows(data / name)]


def gates_table(data: Path) -> str:
    """Return the single gates of `benchmarks.gates`, ours beside cuStateVec's."""
    rows = timed_rows(gate_rows(data))
    theirs = {row["workload"]: row for row in beside(rows)[1]}
    return text_table([
        {
            "gate": own["workload"].removeprefix("gate-28q-"),
            "ours (µs)": number(own["time_us_p50"]), "predicted (µs)": number(own["predicted_us"]),
            "of limit (%)": number(100 * own["limit_fraction"]),
            "cuStateVec (µs)": number(other["time_us_p50"]),
            "×": f"{other['time_us_p50'] / own['time_us_p50']:.2f}",
            "error": _small(own["rel_frobenius"]), "bound": _small(own["bound"]),
            "norm drift": _small(own["norm_drift"]),
            "cuStateVec's error": _small(other["rel_frobenius"]),
        }
        for own in beside(rows)[0] for other in [theirs[own["workload"]]]
    ], "gate")  # fmt: skip


def circuits_table(data: Path) -> str:
    """Return the circuits of `benchmarks.gates`, rows of a name together, with the norm's drift."""
    columns = [
        *(column for column in PERFORMANCE if column.field in _OF_CIRCUITS),
        *(column for column in ACCURACY if column.field in ("norm_drift", "fidelity")),
        Column("algorithm", "how"),
    ]
    rows = [row for row in circuit_rows(data) if row["time_us_p50"]]
    names = [row["workload"] for row in rows]
    return markdown_table(columns, sorted(rows, key=lambda row: names.index(row["workload"])))


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


def _small(value: str | float) -> str:
    return number(float(value), scientific=True)


GATE_TABLES: dict[str, Callable[[Path], str]] = {
    "h200-gates-all": gates_table,
    "h200-circuits-all": circuits_table,
    "h200-gate-costs": gate_costs_table,
    "h200-gate-settling": settling_table,
    "h200-gate-truncation": gate_cut_table,
}
