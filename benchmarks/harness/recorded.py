"""Recorded measurements: the CSV files of records under docs/data/."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from workflow.accuracy.measures import every_measure
from workflow.records import BenchmarkRecord

_NUMBERS = {
    *(one.name for one in fields(BenchmarkRecord) if "float" in one.type or "int" in one.type),
    *every_measure(),
}

Row = Mapping[str, Any]
Rows = list[dict[str, Any]]

OURS = "argand"
NOT_VERIFIED = "not verified"
"""The verdict of a row that says no other and is not verified."""


def read_rows(path: Path) -> Rows:
    """Return the rows of a CSV of records, numbers as numbers; gaps, and columns it lacks, as None.

    ``verified`` is "True" or "False", whichever program wrote it. A verified row has no
    ``verdict``, so that only those that are not verified show one. In files without ``worst_bound``
    the bound is in another measure than the error beside it (until 2026-11-23), and left out.
    """
    found = []
    nothing: dict[str, Any] = dict.fromkeys(BenchmarkRecord.columns_in_order())
    for text in plain_rows(path):
        row = nothing | {key: _value(key, value) for key, value in text.items()}
        if "worst_bound" not in text:
            row["bound"] = None
        row["verified"] = str(row["verified"] or "").capitalize()
        if row["settled"] is not None:
            row["settled"] = row["settled"].lower() == "true"
        row["verdict"] = None if is_verified(row) else row["verdict"] or NOT_VERIFIED
        found.append(row)
    return found


def plain_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of any CSV as they stand there."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _value(key: str, text: str) -> Any:
    if text == "":
        return None
    return float(text) if key in _NUMBERS else text


def is_verified(row: Row) -> bool:
    """Return whether the row's result was verified."""
    return bool(row["verified"] == "True")


def timed_rows(rows: Sequence[Row], **values: object) -> list[Row]:
    """Return the verified rows that have a time and these values."""
    return [
        row for row in rows
        if is_verified(row) and row["time_us_p50"]
        and all(row[name] == value for name, value in values.items())
    ]  # fmt: skip


def fastest(rows: Iterable[Row], *key: str) -> dict[tuple[object, ...], Row]:
    """Return the row of least time for each key."""
    best: dict[tuple[object, ...], Row] = {}
    for row in rows:
        of = tuple(row[name] for name in key)
        if of not in best or row["time_us_p50"] < best[of]["time_us_p50"]:
            best[of] = row
    return best


def beside(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return our rows, and those of libraries."""
    ours = [row for row in rows if row["implementation"] == OURS]
    return ours, [row for row in rows if row["implementation"] != OURS]


def slowest_placement(rows: Sequence[Row]) -> dict[int, Row]:
    """Return for each number of targets the row that takes longest, wherever the targets lie.

    The rows are of single gates by `benchmarks.gates`, named gate-28q-<qubits>-<placement>.
    """
    worst: dict[int, Row] = {}
    for row in rows:
        qubits = int(row["workload"].split("-")[2])
        if qubits not in worst or row["time_us_p50"] > worst[qubits]["time_us_p50"]:
            worst[qubits] = row
    return worst


def shape_words(row: Row) -> str:
    """Return a product's sizes, m by n by k, with its batch where it has one."""
    sizes = "x".join(f"{row[name]:.0f}" for name in ("m", "n", "k"))
    return sizes if row["batch"] == 1 else f"{row['batch']:.0f} x ({sizes})"
