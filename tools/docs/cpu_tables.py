"""The ratios of `make bench` and of drawn calls on the CPU, as recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from benchmarks.sweep.quantiles import SLOWER, quantiles_of
from workflow.tables.readable import Column, markdown_table, number

CALLS = ("cpu-calls", "cpu-calls-two-cores")
"""Records of drawn calls: on one core, and on two."""
_SHORT_US = 50
"""Microseconds of NumPy on one core, below which a call is short."""
_TIMES = ("default study, seconds", "the same without computing")
"""Rows that are times of ours, with nothing measured beside them."""


def ratios_table(data: Path) -> str:
    """Return the CPU's memory and speed of files as ratios, and seconds of the default study."""
    rows = [
        row | {"ratio": "" if row["what"] in _TIMES else number(float(row["ratio"])),
               "ours": number(float(row["ours"])) if row["what"] in _TIMES else ""}
        for row in plain_rows(data / "cpu-ratios.csv")
    ]  # fmt: skip
    columns = [Column("what", "what"), Column("ratio", "ratio", numeric=True)]
    return markdown_table([*columns, Column("ours", "seconds", numeric=True)], rows)


def calls_table(data: Path) -> str:
    """Return NumPy's time over ours of drawn calls on one core and on two, by operation.

    Each operation has a line for all cases, one for the short ones and one for the others.
    """
    one, two = (plain_rows(data / f"{name}.csv") for name in CALLS)
    took = {_case(row): float(row["numpy_us"]) for row in one}
    rows = []
    for operation in dict.fromkeys(row["operation"] for row in one):
        for what, low, high in (
            ("all", 0.0, math.inf), (f"below {_SHORT_US} us", 0.0, _SHORT_US),
            ("the others", _SHORT_US, math.inf),
        ):  # fmt: skip
            row: dict[str, object] = {"operation": operation, "what": what}
            for cores, recorded in (("one", one), ("two", two)):
                found = quantiles_of(
                    float(each["ratio"]) for each in recorded
                    if each["operation"] == operation and low <= took[_case(each)] < high
                )  # fmt: skip
                if found is not None:
                    row |= {f"{cores}_{name}": value for name, value in asdict(found).items()}
            if "one_count" in row:
                rows.append(row)
    columns = [
        Column("operation", "operation"),
        Column("what", "NumPy's time"),
        Column("one_count", "cases", numeric=True),
    ]
    for cores, title in (("one", "one core"), ("two", "two cores")):
        columns.append(Column(f"{cores}_slower", f"{title}: below {SLOWER}", numeric=True))
        columns += [
            Column(f"{cores}_{name}", f"{title}: {name.replace('_', ' ')}", number, numeric=True)
            for name in ("least", "median", "geometric_mean")
        ]
    return markdown_table(columns, rows)


def _case(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row["operation"], row["shape"], row["dtype"]
