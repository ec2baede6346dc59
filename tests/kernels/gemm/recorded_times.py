"""Times of candidate plans that were recorded on an H200, beside which models of time are held."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

Case = tuple[str, str, str]
Times = dict[str, float]


def recorded(name: str, last: str = "precision") -> dict[Case, Times]:
    """Least microseconds of each plan in a file here, by shape, ops and a ``last`` column."""
    found: dict[Case, Times] = defaultdict(dict)
    with Path(__file__).with_name(name).open() as file:
        for row in csv.DictReader(file):
            times, time = found[row["shape"], row["kind"], row[last]], float(row["time_us"])
            times[row["plan"]] = min(time, times.get(row["plan"], time))
    return found


def sizes_of(shape: str) -> tuple[int, int, int, int]:
    """Batch, m, n and k of MxNxK or BATCHxMxNxK."""
    *batch, m, n, k = map(int, shape.split("x"))
    return (batch or [1])[0], m, n, k
