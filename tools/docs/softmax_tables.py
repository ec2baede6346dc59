"""The tables of softmax, from what its benchmarks wrote under docs/data/."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.recorded import plain_rows, read_rows
from tools.docs.product_tables import CONDITIONS, with_formats
from tools.docs.shown import shown_columns
from workflow.tables.readable import Column, markdown_table, number

SOFTMAX, RINGS = "h200-softmax.csv", "h200-softmax-rings.csv"


def softmaxes_table(data: Path) -> str:
    """Return the benchmark of softmax."""
    rows = [row for row in read_rows(data / SOFTMAX) if row["time_us_p50"]]
    return markdown_table(with_formats([*shown_columns(), *CONDITIONS[-2:]]), rows)


def rings_table(data: Path) -> str:
    """Return for each kind and width the fastest plan that `benchmarks.softmax.plans` measured."""
    rows = [row for row in plain_rows(data / RINGS) if row["right"] == "True"]
    best: dict[tuple[str, str], dict[str, str]] = {}
    for row in sorted(rows, key=lambda row: float(row["time_us"])):
        best.setdefault((row["kind"], row["columns"]), row)
    names = ("kind", "rows x columns", "threads x blocks", "values", "plan", "time (µs)", "GB/s",
             "of copy (%)")  # fmt: skip
    numeric = names[5:]
    return markdown_table(
        [Column(name, name, numeric=name in numeric) for name in names],
        [_plan_row(best[key]) for key in dict.fromkeys((r["kind"], r["columns"]) for r in rows)],
    )


def _plan_row(row: dict[str, str]) -> dict[str, str]:
    plan = "staged" if row["staged"] == "True" else "resident"
    if int(row.get("stages", 0)) > 0:
        plan = f"ring, lag {row['lag']}"
    return {
        "kind": row["kind"],
        "rows x columns": f"{row['rows']}x{row['columns']}",
        "threads x blocks": f"{row['row_threads']} x {row['cluster']}",
        "values": row["values"],
        "plan": plan if row["resident"] == "True" else "streamed",
        "time (µs)": number(float(row["time_us"])),
        "GB/s": number(float(row["gbytes_per_s"])),
        "of copy (%)": number(100 * float(row["of_copy"])),
    }


SOFTMAX_TABLES: dict[str, Callable[[Path], str]] = {
    "h200-softmax-all": softmaxes_table,
    "h200-softmax-rings": rings_table,
}
