"""Jobs of a running Snakemake, found to be ended in the middle."""

from __future__ import annotations

import time
from pathlib import Path

import psutil


def running_job(folder: Path, rule: str, seconds: float = 120) -> int:
    """The process of a job of a rule in a folder, as soon as there is one."""
    deadline = time.monotonic() + seconds
    while not (found := _jobs(folder, rule)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert found, f"no job of {rule} within {seconds:g} s"
    return found[0]


def _jobs(folder: Path, rule: str) -> list[int]:
    """The processes that run a rule's script in a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.cwd() == str(folder) and f".{rule}.py" in " ".join(process.cmdline())
        except psutil.Error:
            continue  # it ended meanwhile, or is not ours to look at
        found += [process.pid] if ours else []
    return found
