"""The rows of a benchmark: compared with each other, printed, and written as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from argand import PRECISIONS

from workflow.records import NOT_RUN, BenchmarkRecord
from workflow.storage.files import atomic_text


def with_speedups(records: Sequence[BenchmarkRecord]) -> list[BenchmarkRecord]:
    """Return each record with the best verified peer's time of its class over its own.

    A peer that writes complex-half is compared only with those that do.
    """
    found = []
    for record in records:
        peer_class = PRECISIONS[record.precision].peer_class
        times = [
            other.time_us_p50
            for other in records
            if other.implementation != "argand"
            and other.workload == record.workload
            and other.output == record.output
            and other.verified
            and other.time_us_p50
            and PRECISIONS[other.precision].peer_class == peer_class
        ]
        best = min(times) / record.time_us_p50 if times and record.time_us_p50 else None
        found.append(replace(record, speedup=best))
    return found


def show_head() -> None:
    """Print the names of the columns that `show` prints."""
    print(
        f"{'workload':34} {'who':15} {'precision':9} {'operands':12} {'p50 us':>11} {'host us':>8} "
        f"{'in turn':>8} "
        f"{'TFLOP/s':>9} "
        f"{'GB/s':>8} {'limit':>6} {'real':>6} {'MHz':>5} {'W':>4} {'speedup':>7} {'error':>9}  "
        "verified  algorithm",
        flush=True,
    )


def show(record: BenchmarkRecord) -> None:
    """Print the columns that matter on a line."""
    verdict = "yes" if record.verified else f"NO: {record.reason}"
    how = record.algorithm
    if record.predicted_us is not None:
        how += f", predicted {record.predicted_us:.1f} us"
    print(
        f"{record.workload:34} {record.implementation:15} {record.precision:9} "
        f"{_operands(record):12} {_cell(record.time_us_p50, '11.1f')} "
        f"{_cell(record.host_us, '8.1f')} {_cell(record.back_to_back_us, '8.1f')} "
        f"{_cell(record.tflops, '9.3f')} "
        f"{_cell(record.gbytes_per_s, '8.1f')} "
        f"{_cell(record.limit_fraction, '6.1%')} {_cell(record.fraction_of_real, '6.1%')} "
        f"{_cell(record.clock_mhz, '5.0f')} {_cell(record.power_w, '4.0f')} "
        f"{_cell(record.speedup, '7.2f')} {_cell(record.rel_frobenius, '9.2e')}  "
        f"{verdict:8}  {how}",
        flush=True,
    )


def _operands(record: BenchmarkRecord) -> str:
    """Return the type of the operands, and a mark where the result is complex-half."""
    return record.input.replace("complex-", "c-") + (
        " > half" if record.output == "complex-half" else ""
    )


def _cell(value: float | None, form: str) -> str:
    """Return a number in a form such as ``9.3f``, or a dash as wide."""
    width = int(form.partition(".")[0])
    return f"{'-':>{width}}" if value is None else format(value, form)


def write_csv(path: Path, records: Sequence[BenchmarkRecord]) -> None:
    """Write records as CSV, in the column order of every table."""
    write_rows(path, [record.row() for record in records])


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write one row or more as CSV, whole or not at all; the columns are those of the first."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    atomic_text(path, text.getvalue())


class Report:
    """Prints and writes each record when it is measured, so that an interrupt loses none."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._records: list[BenchmarkRecord] = []

    def add(self, records: Iterable[BenchmarkRecord]) -> None:
        """Add the records of one case, one by one: a generator measures each when it is asked.

        What is printed has its speedup over the peers before it, what is written over all so far;
        in the file ours stand before the peers.
        """
        before, case = self._records, list[BenchmarkRecord]()
        show_head()
        for record in records:
            case = with_speedups([*case, record])
            show(case[-1])
            own = [one for one in case if one.implementation == "argand"]
            self._records = [*before, *own, *(one for one in case if one not in own)]
            if self._path is not None:
                write_csv(self._path, self._records)

    @property
    def status(self) -> int:
        """The exit status: 1 where something of ours ran and did not verify."""
        return int(
            any(
                record.implementation == "argand"
                and not record.verified
                and not record.reason.startswith(NOT_RUN)
                for record in self._records
            )
        )
