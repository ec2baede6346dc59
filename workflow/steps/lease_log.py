"""Reading the log of leases: which job had which GPU, and from when to when."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from argand.runtime.plain_files import read_plain

Lease = dict[str, Any]
"""A line, as `workflow.steps.job_device` writes it."""


def leases(log: Path) -> list[Lease]:
    """Return the lines of a lease log; none where there is no such file."""
    try:
        text = read_plain(log).decode()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines()]


def pairs(lines: Sequence[Lease]) -> list[tuple[Lease, Lease]]:
    """Return the line of each lease that was taken, and the one where it was given back."""
    back = {line["pid"]: line for line in lines if line["event"] == "given back"}
    return [(line, back[line["pid"]]) for line in lines if line["event"] == "taken"]


def seconds(line: Lease) -> float:
    """Return the time of a line, in seconds since the epoch."""
    return datetime.fromisoformat(line["time"]).timestamp()
