"""Tables of the campaigns of attacks, of planted errors and of random cases, as recorded."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.recorded import plain_rows
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
    """Return the table of planted errors that verification catches: `benchmarks.planted`.

    A result at a precision that proves nothing about any of the cases has no numbers of catches.
    """
    rows = plain_rows(data / "planted.csv")
    for row in rows:
        names = [part.rpartition(" of ")[0].rpartition(" ")[0] for part in _parts(row["missed"])]
        row["missed"] = "not provable" if row["unproven"] == row["cases"] else ", ".join(names)
    return markdown_table(_PLANTED, rows)


_EXCEEDANCES = ("cases", "exceeded", "unproven", "largest", "median_ratio")
_HEADINGS = {"largest": "largest error / bound", "median_ratio": "median bound / error"}


def exceedances_table(data: Path) -> str:
    """Return how right results of random workloads lie to their bounds (`exceedances`).

    Of the CPU and, where they are recorded too, of the H200 beside it.
    """
    columns = [Column("kind", "kind"), Column("precision", "precision")]
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for device in ("cpu", "h200"):
        path = data / f"exceedances-{device}.csv"
        if device != "cpu" and not path.exists():
            continue
        for name in _EXCEEDANCES:
            heading = f"{device.upper()}: {_HEADINGS.get(name, name)}"
            columns.append(Column(f"{name} {device}", heading, numeric=True))
        for found in plain_rows(path):
            row = rows.setdefault((found["kind"], found["precision"]), dict(found))
            for name in _HEADINGS:
                found[name] = number(float(found[name])) if found[name] else ""
            row |= {f"{name} {device}": found[name] for name in _EXCEEDANCES}
    blank = dict.fromkeys((column.field for column in columns), "")
    return markdown_table(columns, [blank | row for row in rows.values()])


def _parts(text: str) -> list[str]:
    return [part for part in text.split("; ") if part]


def attack_table(data: Path) -> str:
    """Return how often each attack of `benchmarks.attack` was tried, and how often Argand held."""
    rows = plain_rows(data / "attack.csv")
    columns = [Column("attack", "attack"), Column("what", "what")]
    columns += [Column(name, name, numeric=True) for name in ("tries", "held", "slipped")]
    return markdown_table(columns, rows)
