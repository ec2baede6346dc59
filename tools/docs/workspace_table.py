"""The table of calls within limits of workspace, from the record of `benchmarks.workspace`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from benchmarks.workspace import limit_in_words
from tools.docs.shown import text_table
from workflow.tables.readable import number

WORKSPACE = "h200-workspace.csv"
_BYTES = {
    "peak (MiB)": "peak_bytes", "documented (MiB)": "documented_bytes",
    "library (MiB)": "library_bytes",
}  # fmt: skip
"""Columns of bytes without a limit."""


def workspace_limits_table(data: Path) -> str:
    """Return a line for each problem: peak and time without a limit, and within each of them."""
    problems: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for row in plain_rows(data / WORKSPACE):
        if row["within"] == "True":
            name = row["operation"], row["shape"], row["precision"]
            problems.setdefault(name, []).append(row)
    lines = []
    for (operation, shape, precision), (free, *limited) in problems.items():
        lines.append(
            {"operation": operation, "sizes": shape, "precision": precision}
            | {title: _mebibytes(free[name]) for title, name in _BYTES.items()}
            | {"time (ms)": number(_milliseconds(free))}
            | {f"in {limit_in_words(int(row['limit_bytes']))}": _cost(row, free) for row in limited}
        )  # fmt: skip
    return text_table(lines, "operation", "sizes", "precision")


def _cost(row: Mapping[str, str], free: Mapping[str, str]) -> str:
    """Return times the time without a limit, and the peak; or what a refused call needs."""
    if int(row["needed_bytes"]):
        return f"needs {_mebibytes(row['needed_bytes'])}"
    return f"{_milliseconds(row) / _milliseconds(free):.2f} ({_mebibytes(row['peak_bytes'])})"


def _mebibytes(nbytes: str) -> str:
    found = int(nbytes) / 2**20
    return f"{found:.0f}" if found >= 1 else f"{found:.2g}"


def _milliseconds(row: Mapping[str, str]) -> float:
    return float(row["time_us"]) / 1e3
