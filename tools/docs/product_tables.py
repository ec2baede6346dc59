"""The tables of products, from what `benchmarks.gemm` wrote under docs/data/."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.recorded import Rows, read_rows
from tools.docs.back_to_back import back_to_back
from tools.docs.shown import shown_columns
from workflow.records import NOT_RUN
from workflow.tables.readable import Column, markdown_table, number, percent

LARGE, BATCHED, SMALL = "h200-gemm-large.csv", "h200-gemm-batched.csv", "h200-gemm-small.csv"
"""Files that `benchmarks.gemm --suite` wrote for the suite of each name."""


def _whole(value: float) -> str:
    return f"{value:.0f}"


CONDITIONS = (
    Column("host_us", "host (µs)", number, numeric=True),
    Column("real_tflops", "real TFLOP/s", numeric=True),
    Column("fraction_of_real", "of real (%)", percent, numeric=True),
    Column("clock_mhz", "clock (MHz)", _whole, numeric=True),
    Column("power_w", "power (W)", _whole, numeric=True),
)
"""Columns of the conditions of a benchmark's row."""
_FORMATS = (Column("input", "operands"), Column("output", "result"))


def with_formats(columns: list[Column]) -> list[Column]:
    """Return the columns, and after the precision the types of operands and result."""
    who = 1 + [column.field for column in columns].index("precision")
    return [*columns[:who], *_FORMATS, *columns[who:]]


def products_table(*suites: str) -> Callable[[Path], str]:
    """Return the measured products of some suites, and their conditions."""

    def table(data: Path) -> str:
        columns = with_formats([*shown_columns(), *CONDITIONS])
        rows = [row for row in _measured(data, *suites) if row["time_us_p50"]]
        return markdown_table(columns, rows)

    return table


def _measured(data: Path, *suites: str) -> Rows:
    return [row for name in suites for row in read_rows(data / name)]


def back_to_back_table(data: Path) -> str:
    """Return small products one after the other, beside the libraries."""
    rows = back_to_back(_measured(data, SMALL))
    names = list(rows[0]) if rows else ["shape"]
    return markdown_table([Column(name, name, numeric=i > 1) for i, name in enumerate(names)], rows)


def left_out_table(data: Path) -> str:
    """Return candidates that the products' benchmark left out, why, and at how many shapes."""
    shapes: dict[tuple[str, ...], list[str]] = {}
    for row in _measured(data, LARGE, BATCHED, SMALL):
        if not row["time_us_p50"]:
            reason = row["reason"].removeprefix(NOT_RUN)
            key = (row["implementation"], row["precision"], row["input"] or "", reason)
            shapes.setdefault(key, []).append(row["workload"])
    if not shapes:
        return "Nothing was left out.\n"
    headings = ("implementation", "precision", "operands", "reason", "shapes")
    found = [dict(zip(headings, (*key, str(len(at))), strict=True)) for key, at in shapes.items()]
    return markdown_table([Column(name, name) for name in headings], found)


PRODUCT_TABLES: dict[str, Callable[[Path], str]] = {
    "h200-products-large": products_table(LARGE),
    "h200-products-batched": products_table(BATCHED),
    "h200-products-small": products_table(SMALL),
    "h200-products-left-out": left_out_table,
    "h200-products-back-to-back": back_to_back_table,
}
