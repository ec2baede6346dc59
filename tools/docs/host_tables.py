"""Times of the host for calls, as `benchmarks.host_times` recorded them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from workflow.tables.readable import Column, markdown_table, number


def _rounded(text: str) -> str:
    return number(float(text))


_COLUMNS = (
    Column("operation", "operation"),
    Column("implementation", "implementation"),
    Column("calls", "calls", numeric=True),
    Column("host_us", "host (µs)", _rounded, numeric=True),
    Column("host_us_least", "least (µs)", _rounded, numeric=True),
)


def host_times_table(data: Path) -> str:
    """Microseconds of the host for each call of a public function, in a row of calls."""
    return markdown_table(_COLUMNS, plain_rows(data / "h200-host-times.csv"))
