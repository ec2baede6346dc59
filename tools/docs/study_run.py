"""The run of the study of docs/data/: its steps, by Snakemake's progress."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.docs.shown import text_table
from workflow.tables.readable import number

_LINE = re.compile(r"(\d\d):(\d\d):(\d\d)  \[ *\d+/\d+\]  ([a-z]+):? +(.*?) +([\d.]+) s(?:  |$)")
_DAY = 86400


@dataclass(frozen=True)
class _Step:
    """A job as `workflow.jobs.progress` logged it, in seconds of the day."""

    name: str
    of: str
    ended: float
    seconds: float


def steps_table(data: Path) -> str:
    """Return each step's jobs, their time and when the last one ended; first, the machine.

    The file has what Snakemake printed, and lines that begin with # about the machine.
    """
    text = (data / "h200-study-progress.txt").read_text(encoding="utf-8")
    about = [line[1:].strip() for line in text.splitlines() if line.startswith("#")]
    steps: dict[str, list[_Step]] = defaultdict(list)
    for step in _logged(text):
        steps[step.name].append(step)
    every = [step for jobs in steps.values() for step in jobs]
    # Clocks go past midnight; a study does not take half a day.
    latest = every[-1].ended
    began = min(_since(latest - _DAY / 2, step.ended) - step.seconds for step in every)
    rows = []
    for name, jobs in steps.items():
        longest = max(jobs, key=lambda job: job.seconds)
        ended = max(_since(latest - _DAY / 2, job.ended) for job in jobs) - began
        rows.append({
            "step": name, "jobs": str(len(jobs)),
            "together (s)": number(sum(job.seconds for job in jobs)),
            "longest (s)": number(longest.seconds), "of": longest.of,
            "last ended after (s)": f"{ended:.0f}",
        })  # fmt: skip
    return "\n".join(about) + "\n\n" + text_table(rows, "step", "of")


def _logged(text: str) -> Iterable[_Step]:
    for line in text.splitlines():
        if found := _LINE.match(line):
            hours, minutes, seconds, name, of, took = found.groups()
            ended = 3600 * int(hours) + 60 * int(minutes) + int(seconds)
            yield _Step(name, of, ended, float(took))


def _since(start: float, clock: float) -> float:
    """Return the seconds from a time of the day to the next time that it is ``clock``."""
    return (clock - start) % _DAY
