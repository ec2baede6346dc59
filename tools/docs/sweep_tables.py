"""The table of sizes drawn at random, from what `benchmarks.sweep` wrote under docs/data/."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tools.docs.recorded import plain_rows
from workflow.tables.readable import Column, markdown_table

SWEEPS = ("gemm", "softmax", "dft", "gates", "small")
SLOWER = 0.97
"""A case is slower where ours has less than this part of the best library's rate."""
_COLUMNS = (
    Column("card", "card"),
    Column("sweep", "sweep"),
    Column("what", "what"),
    Column("cases", "cases", numeric=True),
    Column("slower", "slower", numeric=True),
    Column("worst", "worst", numeric=True),
    Column("p10", "p10", numeric=True),
    Column("median", "median", numeric=True),
    Column("mean", "geometric mean", numeric=True),
    Column("copy", "of copy: p10 / median", numeric=True),
    Column("regret", "regret: p90 / worst", numeric=True),
)
_NOTHING = "–"


def sweep_files(data: Path) -> Iterator[tuple[str, str, Path]]:
    """Card, sweep and file of every recorded sweep."""
    for card in ("h200", "h100"):
        for sweep in SWEEPS:
            path = data / f"{card}-sweep-{sweep}.csv"
            if path.exists():
                yield card.upper(), sweep, path


def sweep_table(data: Path) -> str:
    """A line for each operation and precision of each sweep: how ours compare, and with what."""
    lines = [line for found in sweep_files(data) for line in _lines(*found)]
    return markdown_table(_COLUMNS, lines)


def _lines(card: str, sweep: str, path: Path) -> Iterator[dict[str, str]]:
    ours = [
        row for row in plain_rows(path)
        if row["implementation"] == "argand" and row["verified"] == "True"
    ]  # fmt: skip
    for what in dict.fromkeys((row["operation"], row["precision"]) for row in ours):
        rows = [row for row in ours if (row["operation"], row["precision"]) == what]
        ratios, copies, regrets = (
            np.array([float(row[name]) for row in rows if row[name]])
            for name in ("ratio", "of_copy", "regret")
        )
        line = {"card": card, "sweep": sweep, "what": " ".join(what), "cases": str(len(rows))}
        line |= dict.fromkeys(("slower", "worst", "p10", "median", "mean"), _NOTHING)
        if ratios.size:
            line |= {
                "slower": str(int((ratios < SLOWER).sum())), "worst": f"{ratios.min():.2f}",
                "p10": f"{np.quantile(ratios, 0.1):.2f}", "median": f"{np.median(ratios):.2f}",
                "mean": f"{np.exp(np.log(ratios).mean()):.2f}",
            }  # fmt: skip
        moved = what[0] != "gemm" and copies.size
        line["copy"] = (
            f"{np.quantile(copies, 0.1):.2f} / {np.median(copies):.2f}" if moved else _NOTHING
        )
        line["regret"] = (
            f"{np.quantile(regrets, 0.9):.2f} / {regrets.max():.2f}" if regrets.size else _NOTHING
        )
        yield line


SWEEP_TABLES: dict[str, Callable[[Path], str]] = {"sweeps": sweep_table}
"""By the name that pages call it."""
