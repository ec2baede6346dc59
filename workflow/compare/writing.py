"""A comparison as Markdown, CSV and one line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workflow.compare.ratios import CONFIDENCE
from workflow.compare.verdicts import Compared, Margins, peers_ratio
from workflow.counted import counted
from workflow.storage.files import atomic_text
from workflow.tables.readable import Column, markdown_table, number, scientific

COLUMNS = (
    "workload", "implementation", "precision", "shard", "verdict", "reason", "regression",
    "time_a_us", "time_b_us", "time_ratio", "time_ratio_low", "time_ratio_high",
    "error_a", "error_b", "error_ratio",
)  # fmt: skip
"""Columns of the CSV. Ratios are B over A; the interval has a confidence of 95 %."""


_SHOWN = (
    Column("workload", "workload"),
    Column("implementation", "implementation"),
    Column("precision", "precision"),
    Column("shard", "shard"),
    Column("verdict", "verdict"),
    Column("time_a_us", "time A (µs)", numeric=True, write=number),
    Column("time_b_us", "time B (µs)", numeric=True, write=number),
    Column("time_ratio", "time B / A", numeric=True, write=number),
    Column("interval", "95 % interval", numeric=True),
    Column("error_a", "error A", numeric=True, write=scientific),
    Column("error_b", "error B", numeric=True, write=scientific),
    Column("error_ratio", "error B / A", numeric=True, write=number),
    Column("reason", "reason"),
)


def values_of(row: Compared) -> dict[str, Any]:
    """Return the cells of one row; None where there is nothing."""
    before, after, time = row.before, row.after, row.time
    times = [one and one.times and one.times.p50 for one in (before, after)]
    found = dict(zip(("workload", "implementation", "precision", "shard"), row.key, strict=True))
    return found | {
        "verdict": row.verdict,
        "reason": row.reason,
        "regression": row.regression,
        "time_a_us": times[0],
        "time_b_us": times[1],
        "time_ratio": time and time.value,
        "time_ratio_low": time and time.low,
        "time_ratio_high": time and time.high,
        "error_a": before.error if before else None,
        "error_b": after.error if after else None,
        "error_ratio": row.error_ratio,
    }


def write_csv(path: Path, rows: Sequence[Compared]) -> None:
    """Write every row at full precision, ``true`` and ``false``, nothing for what is missing."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in map(values_of, rows):
        writer.writerow({k: str(v).lower() if isinstance(v, bool) else v for k, v in row.items()})
    atomic_text(path, text.getvalue())


def write_markdown(
    path: Path, rows: Sequence[Compared], names: tuple[str, str], margins: Margins
) -> None:
    """Write the comparison for people: regressions first, then what changed, then the rest."""
    shown = [values_of(row) | {"interval": _interval(row)} for row in sorted(rows, key=_place)]
    across = f" Compared across {', '.join(sorted(margins.across))}." if margins.across else ""
    text = (
        f"# Comparison\n\nA is `{names[0]}`, B is `{names[1]}`. {summary(rows)}\n\n"
        f"Ratios are B over A: below 1, B is faster or more accurate. The interval of the ratio of "
        f"the medians has a confidence of {CONFIDENCE:.0%}; it is drawn from the quantiles that "
        f"each run recorded. B is slower where all of it lies above {1 + margins.time:g}, and less "
        f"accurate where the ratio of the errors is above {1 + margins.error:g}.{across}\n\n"
    )
    atomic_text(path, text + markdown_table(_SHOWN, shown))


def summary(rows: Sequence[Compared]) -> str:
    """Return how many rows have which verdict, and what became of the peers' times.

    Those that moved with the peers of their workload are counted apart.
    """
    with_peers = {False: "", True: " as their peers are"}
    counts = Counter(row.verdict + with_peers[row.peers] for row in sorted(rows, key=_place))
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    peers = peers_ratio(rows)
    beside = f"; the peers' times are {number(peers)} of A's (median)" if peers else ""
    return f"{counted(len(rows), 'row')}: {verdicts}{beside}."


def _place(row: Compared) -> tuple[bool, bool, bool]:
    return not row.regression, row.verdict == "same", not row.is_compared


def _interval(row: Compared) -> str:
    if row.time is None or row.time.low is None or row.time.high is None:
        return ""
    return f"{number(row.time.low)} to {number(row.time.high)}"
