"""Kills at any time, and a second run beside the first: the same command ends equal."""

from __future__ import annotations

import time

from benchmarks.attack.campaign import Attempt, require
from benchmarks.attack.studies import Run, difference, prepare


def kills(attempt: Attempt) -> None:
    """Kill (-9) Snakemake and its jobs once or twice, then give the same command."""
    reference, folder = attempt.ground.finished, attempt.folder
    prepare(folder)
    for _ in range(int(attempt.rng.integers(1, 3))):
        run = Run(attempt.ground.root, folder)
        time.sleep(float(attempt.rng.uniform(0.05, 1.0)) * attempt.ground.seconds)
        run.kill()
    run = Run(attempt.ground.root, folder)
    status = run.finish()
    require(status == 0, f"after kills the same command ended with {status}: {run.said[-300:]}")
    found = difference(folder, reference)
    require(not found, f"after kills {found}")
    left = [str(path.name) for path in (folder / "results").rglob("*.part")]
    require(not left, f"after kills there are still {left}")


def two_runs(attempt: Attempt) -> None:
    """Run the same command twice in one folder: the second is refused and names the first."""
    reference, folder = attempt.ground.finished, attempt.folder
    prepare(folder)
    first = Run(attempt.ground.root, folder)
    lock = folder / "results" / ".lock"
    deadline = time.monotonic() + 60
    while not (lock.exists() and lock.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(float(attempt.rng.uniform(0.0, 0.3)) * attempt.ground.seconds)
    second = Run(attempt.ground.root, folder)
    status, other = second.finish(), first.finish()
    named = f"process {first.process.pid}" in second.said
    require(status != 0, f"a second run ended with {status} beside the first, which ended {other}")
    require(named, f"the second run does not name the first: {second.said[-300:]}")
    require(other == 0, f"the first run ended with {other} beside a second: {first.said[-300:]}")
    found = difference(folder, reference)
    require(not found, f"after two runs {found}")
