"""Recorded measurements: the CSV files of records under docs/data/, and the columns to show."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from workflow.records import BenchmarkRecord
from workflow.tables.readable import PERFORMANCE, Column

_FIELDS = fields(BenchmarkRecord)
_NUMBERS = {field.name for field in _FIELDS if "float" in field.type or "int" in field.type}
_HIDDEN = ("verified", "verdict", "reason", "algorithm", "device")

Row = Mapping[str, Any]
Rows = list[dict[str, Any]]


def read_rows(path: Path) -> Rows:
    """The rows of a CSV of records, numbers as numbers; gaps, and columns it lacks, as None.

    In files without ``worst_bound`` the bound is in another measure than the error beside it (until
    2026-11-23), and left out.
    """
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    nothing: dict[str, Any] = dict.fromkeys(field.name for field in _FIELDS)
    found = [nothing | {key: _value(key, value) for key, value in row.items()} for row in rows]
    if rows and "worst_bound" not in rows[0]:
        found = [row | {"bound": None} for row in found]
    return found


def _value(key: str, text: str) -> Any:
    if text == "":
        return None
    return float(text) if key in _NUMBERS else text


def timed_rows(rows: Sequence[Row], **values: object) -> list[Row]:
    """The verified rows that have a time and these values."""
    return [
        row for row in rows
        if row["verified"] == "True" and row["time_us_p50"]
        and all(row[name] == value for name, value in values.items())
    ]  # fmt: skip


def shown_columns() -> list[Column]:
    """Of the performance table those that a page has room for."""
    return [column for column in PERFORMANCE if column.field not in _HIDDEN]
