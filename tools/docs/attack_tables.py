"""What the campaigns of attacks, of planted errors and of random cases found, as recorded."""

from __future__ import annotations

from pathlib import Path

from tools.docs.recorded import plain_rows
from workflow.tables.readable import Column, markdown_table, number

_PLANTED = (
    *(Column(name, name) for name in ("kind", "reference", "precision")),
    Column("cases", "cases", numeric=True),
    Column("unproven", "not provable", numeric=True),
    *(Column(name, name, numeric=True) for name in ("failed", "tries", "caught")),
    *(
        Column(name, heading, numeric=True)
        for name, heading in (
            ("largest", "d, largest"), ("typical", "d, typical"), ("random", "d, random"),
            ("whole", "d, all"),
        )
    ),
    Column("missed", "missed"),
)  # fmt: skip


def planted_table(data: Path) -> str:
    """What verification catches of errors planted into right results: `benchmarks.planted`.

    A result at a precision that proves nothing about any of the cases has no numbers of catches.
    """
    rows = plain_rows(data / "planted.csv")
    for row in rows:
        names = [part.rpartition(" of ")[0].rpartition(" ")[0] for part in _parts(row["missed"])]
        row["missed"] = "not provable" if row["unproven"] == row["cases"] else ", ".join(names)
    return markdown_table(_PLANTED, rows)


_EXCEEDANCES = (
    *(Column(name, name) for name in ("kind", "precision")),
    *(Column(name, name, numeric=True) for name in ("cases", "exceeded", "unproven")),
    Column("largest", "largest error / bound", numeric=True),
    Column("median_ratio", "median bound / error", numeric=True),
)


def exceedances_table(data: Path) -> str:
    """How right results lie to their bounds: `benchmarks.pipeline.exceedances`."""
    rows = plain_rows(data / "exceedances-cpu.csv")
    for row in rows:
        for name in ("largest", "median_ratio"):
            row[name] = number(float(row[name])) if row[name] else ""
    return markdown_table(_EXCEEDANCES, rows)


def _parts(text: str) -> list[str]:
    return [part for part in text.split("; ") if part]


def attack_table(data: Path) -> str:
    """Of each attack of `benchmarks.attack` how often it was tried, and how often Argand held."""
    rows = plain_rows(data / "attack.csv")
    columns = [Column("attack", "attack"), Column("what", "what")]
    columns += [Column(name, name, numeric=True) for name in ("tries", "held", "slipped")]
    return markdown_table(columns, rows)
