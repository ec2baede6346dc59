"""The tables of a study as files.

Every table is written for programs (CSV with all columns, HDF5 with units) and for people
(Markdown, and HTML that sorts and searches).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from argand import PRECISIONS
from argand.precision import PEER_CLASSES

from workflow.accuracy.measures import every_measure
from workflow.measuring.spread import CONFIDENCE, WIDEST
from workflow.records import Record
from workflow.storage.datasets import create
from workflow.storage.files import atomic_text
from workflow.tables.ranking import complete, of_verified, ordered
from workflow.tables.readable import (
    ACCURACY,
    FAILED,
    GROWTH,
    PERFORMANCE,
    Column,
    Section,
    html_page,
    markdown_table,
)
from workflow.tables.unsettled import unsettled_banner

if TYPE_CHECKING:
    from workflow.accuracy.grading import GrowthRow

UNITS = {
    "time_us_p20": "us", "time_us_p50": "us", "time_us_p80": "us", "time_us_low": "us",
    "time_us_high": "us", "end_to_end_us": "us", "predicted_us": "us", "clock_mhz": "MHz",
    "tflops": "Tflop/s", "gbytes_per_s": "GB/s", "energy_j": "J",
}  # fmt: skip
"""Units of the columns that have one, but measures of a kind; the others are counts and ratios."""

PERFORMANCE_TEXT = (
    "One row for each implementation and precision of each workload. A result that did not verify "
    "keeps its row and its reason but no numbers. Time is the median of the whole call in device "
    "memory, over batches of each of which the shortest call counts; ours and the peers of a "
    f"workload take turns. It lies between from and to at a confidence of {CONFIDENCE:.0%}; where "
    f"they are more than {WIDEST:.0%} of it apart, it is unsettled. Load is how many cores other "
    "programs kept busy meanwhile. TFLOP/s counts nominal operations (8 batch m n k for a complex "
    "product), GB/s each operand read once and each result written once. The limit is the time "
    "that the device's own ceilings allow, measured in the job that timed the row. "
    "Speedup is the time of the fastest verified peer of the same precision class, on "
    "the same workload and device, over this row's; where the class has no peer, the peers of the "
    "next more accurate class that has one count (classes, most accurate "
    f"first: {', '.join(PEER_CLASSES)}). Of a workload in shards, time is the sum of their "
    "medians, which is what one device would take for all of them, and the error is that of the "
    "worst; tables/shards.md has each. Of a result that was streamed through the device in chunks, "
    "it is the time of their computations alone, each taken once. On a CPU precisions of a GPU are "
    "models, whose times say nothing of a GPU and are not compared with peers."
)
FAILED_TEXT = (
    "The last run did not finish. These steps failed, or were not reached because others did; the "
    "same command does them again. Rows of workloads without results have the verdict failed."
)
SHARDS_TEXT = (
    "One row for each shard, implementation and precision of the workloads that were split, as "
    "each was timed and verified by itself; one that did not verify has no times."
)
_RANGES = ", ".join(
    f"2^{row.full_range} at {row.name}" for row in PRECISIONS.values() if row.scaled
)
ACCURACY_TEXT = (
    "Errors against SciPy in fp64. The error is ||X^ - X|| / ||X|| over the whole result, an "
    "estimate where the reference is sampled, and what it is at most has a confidence of 1 - 1e-9. "
    "The bound is what it is held to: the smaller one of the worst-case bound and of what a right "
    "result exceeds with a probability of 1e-9; above 0.1 it proves nothing. The componentwise "
    "errors are the largest of |Re(X^ - X)| and of |Im(X^ - X)| over |A| |B|. Of products at a "
    "precision that scales its operands, lines out of range are the rows of A and columns of B "
    "whose spread (largest over smallest component but 0) is more than it represents to its unit "
    f"roundoff ({_RANGES}); their smallest elements are held "
    "relative to the line's largest. The tolerance is the study's, on what the error is at most."
)
GROWTH_TEXT = (
    "Growth of the largest componentwise error of our product with k, over inputs of several "
    "kinds: the slope of log(error) against log(k), for the real and the imaginary part apart. "
    "Grade A: within the a-priori bound at every k, and no steeper than theory has it. Grade C: "
    "only relative to the norms of the rows and columns. Grade F: not even that."
)


def write_performance(
    records: Sequence[Record],
    *,
    csv_path: Path,
    markdown: Path,
    hdf5: Path,
    html: Path,
    failed: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the performance table in its four forms, each atomically.

    ``records`` are those of all workloads as they were verified; `complete` is applied here. Failed
    jobs (``failed``, rows of `readable.FAILED`) come first in the forms for people.
    """
    completed = ordered(complete(records))
    rows = [record.row() for record in completed]
    _write_csv(csv_path, rows, Record.columns_in_order())
    banner = unsettled_banner(completed)
    noted = f"**{banner}**\n\n" if banner else ""
    table = f"{PERFORMANCE_TEXT}\n\n{markdown_table(PERFORMANCE, rows)}"
    sections: list[Section] = [("", PERFORMANCE_TEXT, PERFORMANCE, rows)]
    if failed:
        failures = f"## Failed\n\n{FAILED_TEXT}\n\n{markdown_table(FAILED, failed)}"
        table = f"{failures}\n## Results\n\n{table}"
        sections = [
            ("Failed", FAILED_TEXT, FAILED, failed),
            ("Results", PERFORMANCE_TEXT, PERFORMANCE, rows),
        ]
    atomic_text(markdown, f"# Performance\n\n{noted}{table}")
    atomic_text(html, html_page("Performance", sections, banner))
    _write_hdf5(hdf5, rows)


def write_accuracy(
    records: Sequence[Record],
    growth: Sequence[GrowthRow],
    *,
    csv_path: Path,
    markdown: Path,
    html: Path,
) -> None:
    """Write the accuracy table in its three forms, each atomically.

    In the CSV our products also carry the slope and the grade of their precision: of the part (real
    or imaginary) with the worse grade. The other two have them in a table of their own.
    """
    rows = [record.row() | _graded(record, growth) for record in ordered(records)]
    _write_csv(csv_path, rows, [column.field for column in (*ACCURACY, *_GRADE)])
    sections = [
        ("Errors", ACCURACY_TEXT, ACCURACY, rows),
        ("Growth with k", GROWTH_TEXT, GROWTH, growth_rows(growth)),
    ]
    text = [f"## {name}\n\n{note}\n\n{markdown_table(c, r)}" for name, note, c, r in sections]
    atomic_text(markdown, "# Accuracy\n\n" + "\n".join(text))
    atomic_text(html, html_page("Accuracy", sections))


def growth_rows(growth: Sequence[GrowthRow]) -> list[dict[str, Any]]:
    """Return the rows of the growth table: each fit with its first and its last point."""
    return [
        asdict(row)
        | {"k_first": row.k_values[0], "error_first": row.errors[0]}
        | {"k_last": row.k_values[-1], "error_last": row.errors[-1]}
        for row in growth
    ]


def write_shards(records: Sequence[Record], *, csv_path: Path, markdown: Path) -> None:
    """Write the rows of all shards in two forms, each atomically; a shard has no speedup."""
    shown = (Column("shard", "shard"), *(c for c in PERFORMANCE if c.field != "speedup"))
    rows = [record.row() for record in ordered(of_verified(records))]
    _write_csv(csv_path, rows, Record.columns_in_order())
    atomic_text(markdown, f"# Shards\n\n{SHARDS_TEXT}\n\n{markdown_table(shown, rows)}")


_GRADE = (Column("slope", "slope"), Column("grade", "grade"))


def _graded(record: Record, growth: Sequence[GrowthRow]) -> dict[str, Any]:
    """Return slope and grade of the worse part; only our products have componentwise errors."""
    parts = [row for row in growth if row.precision == record.precision]
    if not record.is_ours or record.componentwise_re is None or not parts:
        return {"slope": None, "grade": None}
    worst = max(parts, key=lambda row: (row.grade, row.slope))
    return {"slope": worst.slope, "grade": worst.grade}


def _write_csv(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Write full precision, ``true`` and ``false``, and nothing for None."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: str(v).lower() if isinstance(v, bool) else v for k, v in row.items()})
    atomic_text(path, text.getvalue())


def _write_hdf5(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write a dataset a column under ``/performance``, which xarray and pandas read as a table.

    Numbers are float64 with NaN for None, text is UTF-8, and ``units`` is an attribute.
    """
    attributes = {"NX_class": "NXroot", "missing": "NaN in a number, empty in a text"}
    with create(path, "table", attributes) as file:
        group = file.create_group("performance")
        group.attrs["NX_class"] = "NXcollection"
        group.attrs["columns"] = list(Record.columns_in_order())
        scale = group.create_dataset("row", data=np.arange(len(rows)))
        scale.make_scale("row")
        types = {name: "str" for name, one in every_measure().items() if one.text}
        types |= {field.name: str(field.type) for field in fields(Record)}
        units = UNITS | {name: one.unit for name, one in every_measure().items() if one.unit}
        for name in Record.columns_in_order():
            values = [row[name] for row in rows]
            dataset = _column(group, name, types.get(name, "float"), values)
            dataset.dims[0].attach_scale(scale)
            if name in units:
                dataset.attrs["units"] = units[name]


def _column(group: h5py.Group, name: str, kind: str, values: list[Any]) -> h5py.Dataset:
    if kind.startswith("str"):
        data = np.array([value or "" for value in values], dtype=object)
        return group.create_dataset(name, data=data, dtype=h5py.string_dtype())
    if kind == "bool":
        return group.create_dataset(name, data=np.array(values, np.uint8))
    numbers = [np.nan if value is None else float(value) for value in values]
    return group.create_dataset(name, data=np.array(numbers, np.float64))
