"""Tables of the campaigns of attacks, of planted errors and of random cases, as recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from tools.docs.shown import text_table
from workflow.tables.readable import Column, markdown_table, number

_PLACES = ("largest", "typical", "random")
_COUNTS = ("cases", "exceeded", "unproven")


def planted_table(data: Path) -> str:
    """Return the table of planted errors that verification catches: `benchmarks.planted`.

    A line has a kind by one way of reference, a column a precision.
    """
    lines: dict[tuple[str, str], dict[str, str]] = {}
    missed: dict[tuple[str, str], dict[str, None]] = {}
    for row in plain_rows(data / "planted.csv"):
        key = row["kind"], row["reference"]
        line = lines.setdefault(key, {"kind": key[0], "reference": key[1], "cases": row["cases"]})
        line[row["precision"]] = _caught(row)
        names = (part.rpartition(" of ")[0].rpartition(" ")[0] for part in _parts(row["missed"]))
        missed.setdefault(key, {}).update(dict.fromkeys(names))
    for key, line in lines.items():
        line["missed at some precision"] = ", ".join(missed[key]) or "–"
    return text_table(list(lines.values()), "kind", "reference", "missed at some precision")


def _caught(row: Mapping[str, str]) -> str:
    """Return the least d of the three places, and where errors were missed how many were caught."""
    if row["unproven"] == row["cases"]:
        return "not provable"
    depths = [row[place] for place in _PLACES]
    depth = min(depths, key=float) if all(depths) else "–"
    caught, tries = int(row["caught"]), int(row["tries"])
    return depth if caught == tries else f"{depth} ({100 * caught // tries} %)"


def exceedances_table(data: Path) -> str:
    """Return how right results of random workloads lie to their bounds (`exceedances`).

    A line has a kind on the CPU, and where they are recorded too on the H200; counts are of all of
    its precisions, each of which has a column of its largest error over the bound.
    """
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for device in ("CPU", "H200"):
        path = data / f"exceedances-{device.lower()}.csv"
        if device != "CPU" and not path.exists():
            continue
        for row in plain_rows(path):
            line = lines.setdefault(
                (row["kind"], device),
                {"kind": row["kind"], "on": device} | dict.fromkeys(_COUNTS, "0"),
            )
            line |= {name: str(int(line[name]) + int(row[name])) for name in _COUNTS}
            line[row["precision"]] = number(float(row["largest"]))
    names = dict.fromkeys(name for line in lines.values() for name in line)
    return text_table([dict.fromkeys(names, "–") | line for line in lines.values()], "kind", "on")


def _parts(text: str) -> list[str]:
    return [part for part in text.split("; ") if part]


def attack_table(data: Path) -> str:
    """Return how often each attack of `benchmarks.attack` was tried, and how often Argand held."""
    rows = plain_rows(data / "attack.csv")
    columns = [Column("attack", "attack"), Column("what", "what")]
    columns += [Column(name, name, numeric=True) for name in ("tries", "held", "slipped")]
    return markdown_table(columns, rows)
