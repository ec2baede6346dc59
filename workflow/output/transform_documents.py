"""The tables of transforms that a page may name, from the benchmark's records."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from workflow.output.readable import Column, markdown_table
from workflow.output.recorded import Rows, read_rows, shown_columns
from workflow.output.wanted_dft import (
    beside_cufft,
    judged_dft,
    judged_dft_errors,
    passes_beside_cufft,
)


def _table(rows: list[dict[str, str]]) -> str:
    return markdown_table([Column(name, name) for name in rows[0]], rows)


def wanted_table(data: Path) -> str:
    """The benchmark of transforms against what was wanted of it."""
    return _table(judged_dft(_suites(data)))


def errors_table(data: Path) -> str:
    """The errors of transforms against what was wanted of them."""
    return _table(judged_dft_errors(_suites(data, "awkward")))


def transforms_table(data: Path) -> str:
    """The benchmark of transforms, and what ran, by which each was judged."""
    columns = [*shown_columns(), Column("algorithm", "what ran")]
    return markdown_table(columns, [row for row in _suites(data) if row["time_us_p50"]])


def awkward_table(data: Path) -> str:
    """The lengths of large prime factors, ours beside cuFFT."""
    return _table(beside_cufft(read_rows(data / "h200-dft-awkward.csv")))


def factors_table(data: Path) -> str:
    """Three passes beside cuFFT's butterflies, as `benchmarks.dft_plans` measured them."""
    with (data / "h200-dft-factors.csv").open(encoding="utf-8") as file:
        return _table(passes_beside_cufft(list(csv.DictReader(file))))


def _suites(data: Path, *more: str) -> Rows:
    """The suite of transforms, that of primes, and more, each length from the first that has it."""
    found = read_rows(data / "h200-dft.csv")
    for suite in ("primes", *more):
        seen = {row["workload"] for row in found}
        rows = read_rows(data / f"h200-dft-{suite}.csv")
        found += [row for row in rows if row["workload"] not in seen]
    return found


TRANSFORM_TABLES: dict[str, Callable[[Path], str]] = {
    "h200-dft": transforms_table,
    "h200-dft-wanted": wanted_table,
    "h200-dft-errors": errors_table,
    "h200-dft-awkward": awkward_table,
    "h200-dft-factors": factors_table,
}
