"""The ratios of `make bench`, as recorded."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from workflow.tables.readable import Column, markdown_table, number

_TIMES = ("default study, seconds", "the same without computing")
"""Rows that are times of ours, with nothing measured beside them."""


def ratios_table(data: Path) -> str:
    """The CPU's times and memory over those of NumPy, SciPy and h5py."""
    rows = [
        row | {"ratio": "" if row["what"] in _TIMES else number(float(row["ratio"])),
               "ours": number(float(row["ours"])) if row["what"] in _TIMES else ""}
        for row in plain_rows(data / "cpu-ratios.csv")
    ]  # fmt: skip
    columns = [Column("what", "what"), Column("ratio", "ratio", numeric=True)]
    return markdown_table([*columns, Column("ours", "seconds", numeric=True)], rows)
