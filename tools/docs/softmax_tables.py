"""The table of softmax, from what its benchmark wrote under docs/data/."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.recorded import read_rows
from tools.docs.product_tables import CONDITIONS, with_formats
from tools.docs.shown import shown_columns
from workflow.tables.readable import markdown_table

SOFTMAX = "h200-softmax.csv"


def softmaxes_table(data: Path) -> str:
    """Return the benchmark of softmax."""
    rows = [row for row in read_rows(data / SOFTMAX) if row["time_us_p50"]]
    return markdown_table(with_formats([*shown_columns(), *CONDITIONS[-2:]]), rows)
