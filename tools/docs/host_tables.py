"""Tables of host times: calls in a row (`benchmarks.host_times`), first calls (`first_call`)."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from tools.docs.shown import rounded
from workflow.tables.readable import Column, markdown_table

_COLUMNS = (
    Column("operation", "operation"),
    Column("implementation", "implementation"),
    Column("calls", "calls", numeric=True),
    Column("host_us", "host (µs)", rounded, numeric=True),
    Column("host_us_least", "least (µs)", rounded, numeric=True),
)


def host_times_table(data: Path) -> str:
    """Return the microseconds of the host for a call of each public function in a row of calls."""
    return markdown_table(_COLUMNS, plain_rows(data / "h200-host-times.csv"))


_SIZED = ("operation", "precision", "sizes")
_FIRST_CALLS = (
    *(Column(name, name) for name in _SIZED),
    Column("kernels_compiled", "kernels", numeric=True),
    Column("cold", "cold (s)", rounded, numeric=True),
    Column("warm", "warm (s)", rounded, numeric=True),
    Column("wheel", "with the wheel (s)", rounded, numeric=True),
)


def first_calls_table(data: Path) -> str:
    """Return the seconds of the first call in a process, by what was compiled before."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for row in plain_rows(data / "h200-first-call.csv"):
        key = tuple(row[column] for column in _SIZED)
        found = rows.setdefault(key, dict(zip(_SIZED, key, strict=True)))
        found[row["cache"]] = row["seconds"]
        if row["cache"] == "cold":
            found["kernels_compiled"] = row["kernels_compiled"]
    return markdown_table(_FIRST_CALLS, list(rows.values()))
