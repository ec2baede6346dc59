"""Tables of programs that compare plans or settings of ours."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from argand.runtime.measuring.timing import queued_seconds

from benchmarks.harness.rows import write_rows

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return the arguments with ``--csv``; the description is shown as it is written."""
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--csv", type=Path, help="where the rows go")
    return found


class Table:
    """Rows that are printed, and written where a path was given, whenever there are more of them.

    So an interrupt loses none.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.rows: list[Mapping[str, Any]] = []

    def add(self, rows: Iterable[Mapping[str, Any] | DataclassInstance], *lines: str) -> None:
        """Add further rows, of the columns of the first, and the lines that are printed of them."""
        self.rows += [row if isinstance(row, Mapping) else asdict(row) for row in rows]
        print(*lines, sep="\n", flush=True)
        if self._path is not None and self.rows:
            write_rows(self._path, self.rows)

    def status(self, column: str) -> int:
        """Return the exit status: 1 where a column that says whether a row is right is not true."""
        return int(not all(row[column] for row in self.rows))


def shown(rows: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """Return plans by time: the fastest ``most``, the one a call takes, and all wrong ones."""
    fastest = sorted(rows, key=lambda row: float(row["time_us"]))
    return [row for at, row in enumerate(fastest) if at < most or row["taken"] or not row["right"]]


def median_seconds(call: Callable[[], object], repeats: int) -> float:
    """Return a call's median time on the current stream, ``repeats`` queued after a first."""
    call()
    return float(np.median(queued_seconds([call], repeats)))
