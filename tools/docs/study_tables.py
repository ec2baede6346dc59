"""The tables of the studies under docs/data/: what precisions cost, and how errors grow with k."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.recorded import is_verified, plain_rows, read_rows
from tools.docs.shown import rounded
from workflow.accuracy.grading import read_growth
from workflow.records import Record
from workflow.tables.precisions import precisions_columns, precisions_rows
from workflow.tables.readable import GROWTH, Column, markdown_table, number
from workflow.tables.study import growth_rows

H200, H200_DEFAULT, CPU = "h200-study.csv", "h200-default-study.csv", "cpu-study.csv"
"""`performance.csv` of the large study and of the default one on an H200, and of
the default study on a CPU."""


def precisions_table(data: Path) -> str:
    """Return a table of what each precision of the study's workloads costs and gains."""
    columns = Record.columns_in_order()
    rows = [{key: row[key] for key in columns} for row in read_rows(data / H200)]
    records = [Record.from_mapping(row | {"verified": is_verified(row)}) for row in rows]
    return markdown_table(precisions_columns(records), precisions_rows(records, {}, {}))


def study_growth_table(data: Path) -> str:
    """Return how the study graded the growth of errors with k, of each precision and part."""
    return markdown_table(GROWTH, growth_rows(read_growth(data / "h200-growth.json")))


def survey_table(data: Path) -> str:
    """Return every workload and precision of a survey, with what its domain measures."""
    columns = (
        Column("workload", "workload"),
        Column("precision", "precision"),
        Column("time_us_p50", "time (ms)", lambda text: number(1e-3 * float(text)), numeric=True),
        Column("rel_frobenius", "error", rounded, numeric=True),
        Column("dynamic_range_db", "dynamic range (dB)", rounded, numeric=True),
        Column("peak_shift", "peaks moved by (cells)", rounded, numeric=True),
        Column("verdict", "verdict"),
    )
    return markdown_table(columns, plain_rows(data / "h100-survey.csv"))


STUDY_TABLES: dict[str, Callable[[Path], str]] = {
    "h100-survey": survey_table,
    "h200-study-growth": study_growth_table,
    "h200-study-precisions": precisions_table,
}
