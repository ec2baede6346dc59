"""What programs share that measure ways of computing the same, and write rows of their own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from argand.runtime.timing import queued_seconds

from benchmarks.harness.rows import write_rows


def parser(description: str | None) -> argparse.ArgumentParser:
    """Arguments with ``--csv``; the description is shown as it is written."""
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--csv", type=Path, help="where the rows go")
    return found


class Table:
    """Rows that are written, where a path was given, whenever there are more of them."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.rows: list[Mapping[str, Any]] = []

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Further rows, of the columns of the first."""
        self.rows += rows
        if self._path is not None and self.rows:
            write_rows(self._path, self.rows)


def median_seconds(call: Callable[[], object], repeats: int) -> float:
    """Of a call on the current stream, ``repeats`` of them queued after a first."""
    call()
    return float(np.median(queued_seconds([call], repeats)))
