"""The ratios of `make bench` and of drawn calls on the CPU, as recorded."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from benchmarks.sweep.quantiles import SLOWER, quantiles_of
from workflow.tables.readable import Column, markdown_table, number

_TIMES = ("default study, seconds", "the same without computing")
"""Rows that are times of ours, with nothing measured beside them."""


def ratios_table(data: Path) -> str:
    """Return the CPU's times and memory over those of NumPy, SciPy and h5py."""
    rows = [
        row | {"ratio": "" if row["what"] in _TIMES else number(float(row["ratio"])),
               "ours": number(float(row["ours"])) if row["what"] in _TIMES else ""}
        for row in plain_rows(data / "cpu-ratios.csv")
    ]  # fmt: skip
    columns = [Column("what", "what"), Column("ratio", "ratio", numeric=True)]
    return markdown_table([*columns, Column("ours", "seconds", numeric=True)], rows)


def calls_table(data: Path) -> str:
    """Return NumPy's time over ours of drawn calls, by operation, of one and several at a time."""
    recorded = plain_rows(data / "cpu-calls.csv")
    rows = []
    for operation in dict.fromkeys(row["operation"] for row in recorded):
        for what, single in (("one", True), ("several", False)):
            ratios = [
                float(row["ratio"]) for row in recorded
                if row["operation"] == operation and (row["batch"] == "1") == single
            ]  # fmt: skip
            found = quantiles_of(ratios)
            if found is not None:
                rows.append({"operation": operation, "what": what, **asdict(found)})
    columns = [
        Column("operation", "operation"),
        Column("what", "matrices, systems or rows"),
        Column("count", "cases", numeric=True),
        Column("slower", f"below {SLOWER}", numeric=True),
        *(
            Column(name, title, number, numeric=True)
            for name, title in (
                ("least", "least"), ("p10", "p10"), ("median", "median"),
                ("geometric_mean", "geometric mean"),
            )
        ),
    ]  # fmt: skip
    return markdown_table(columns, rows)
