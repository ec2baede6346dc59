"""Jobs of a running Snakemake, held in the middle and found to be ended there, and killed runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import psutil
from shared_runs import QUICK

T = TypeVar("T")
HELD = f"""{QUICK}
import os, time
from workflow.steps import execute, staging, verification

def held(rule, function):
    def wait(*given, **named):
        while os.path.exists(f"hold-{{rule}}"):
            time.sleep(0.02)
        return function(*given, **named)
    return wait

execute.execute = held("run", execute.execute)
staging.stage = held("stage", staging.stage)
verification.verify = held("verify", verification.verify)
"""
"""For ``sitecustomize``: a job waits where it has begun, as long as there is a file of its rule."""


def held_environ(folder: Path) -> dict[str, str]:
    """The environment of a run in a folder whose jobs can be held there, by `hold`."""
    (folder / "sitecustomize.py").write_text(HELD)
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


@contextmanager
def held_run(folder: Path, run: Callable[[], T], *rules: str) -> Iterator[Future[T]]:
    """Runs Snakemake beside the block with the jobs of some rules held; it has ended afterwards.

    The block calls `release` for each rule, but the last ones, which its end releases.
    """
    for rule in rules:
        (folder / f"hold-{rule}").touch()
    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit(run)
        finally:
            for rule in rules:
                release(folder, rule)


def release(folder: Path, rule: str) -> None:
    """Let the jobs of a rule go on."""
    (folder / f"hold-{rule}").unlink(missing_ok=True)


def running_job(folder: Path, rule: str, seconds: float = 120) -> psutil.Process:
    """The process of a job of a rule in a folder, as soon as there is one."""
    deadline = time.monotonic() + seconds
    while not (found := processes_of(folder, rule)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert found, f"no job of {rule} within {seconds:g} s"
    return found[0]


def killed_run(folder: Path, run: Callable[[], T], begun: Callable[[], bool]) -> T:
    """Run Snakemake in a folder, and kill -9 it and its jobs as soon as something has begun."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        deadline = time.monotonic() + 60
        while not begun() and not running.done() and time.monotonic() < deadline:
            time.sleep(0.02)
        for process in processes_of(folder, "snakemake") + processes_of(folder):
            with suppress(psutil.Error):  # it has ended meanwhile
                process.kill()
        return running.result()


def processes_of(folder: Path, name: str = "") -> list[psutil.Process]:
    """The processes in a folder that a `fork_server` named after a rule, or ``snakemake``.

    All of them are returned where no name is given.
    """
    found = []
    for process in psutil.process_iter():
        try:
            ours = name in ("", process.name()) and process.cwd() == str(folder)
        except psutil.Error:
            continue  # it ended meanwhile, or is not ours to look at
        found += [process] if ours else []
    return found
