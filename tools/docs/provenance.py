"""Origin of numbers: device, day and versions, as the recorded files say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.recorded import plain_rows

_DAY = len("2026-11-22")


def recorded_table(data: Path, *names: str) -> str:
    """Return a line for each file, linked from a page in docs/tables/, then the versions.

    For files whose cases were drawn it has the seed too.
    """
    rows = {name: list(_rows_of(data / name)) for name in names}
    drawn = any(row.get("seed") for said in rows.values() for row in said)
    lines = ["| recorded in | on | day |", "| --- | --- | --- |"]
    if drawn:
        lines = [lines[0] + " seed |", lines[1] + " ---: |"]
    versions = set[str]()
    for name, said in rows.items():
        versions |= {row["versions"] for row in said if row.get("versions")}
        days = sorted({row["timestamp"][:_DAY] for row in said if row.get("timestamp")})
        devices = sorted({row["device"] for row in said if row.get("device")})
        when = " and ".join(dict.fromkeys((days[0], days[-1]))) if days else "–"
        line = f"| [{name}](../data/{name}) | {', '.join(devices) or '–'} | {when} |"
        if drawn:
            seeds = dict.fromkeys(str(row["seed"]) for row in said if row.get("seed"))
            line += f" {', '.join(seeds) or '–'} |"
        lines.append(line)
    with_versions = "".join(f"\nWith {found}.\n" for found in sorted(versions))
    return "\n".join(lines) + "\n" + with_versions


def _rows_of(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a CSV or objects of a JSON file, which may say device and versions."""
    if path.suffix == ".csv":
        yield from plain_rows(path)
        return
    content = json.loads(path.read_text(encoding="utf-8"))
    for found in content if isinstance(content, list) else [content]:
        devices = found.get("devices", [])
        yield {"device": f"{len(devices)} x {devices[0]}"} | found if devices else found


def versions_list(data: Path) -> str:
    """Return the devices and versions that stand in the H200's records.

    A line that another one only adds to is left out: older records do not say the driver.
    """
    found: set[str] = set()
    for path in sorted(data.glob("h200-*.csv")):
        rows = plain_rows(path)
        found |= {f"- {row['device']}; {row['versions']}" for row in rows if row.get("versions")}
    longest = [one for one in found if not any(x != one and x.startswith(one) for x in found)]
    return "\n".join(sorted(longest)) + "\n"
