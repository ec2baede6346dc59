"""The log of leases: which job had which GPU, and from when to when; written and read."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from logging import Logger
from pathlib import Path
from typing import Any

from argand.runtime.files.plain_files import open_plain, read_plain

from workflow.jobs.gpu_lease import Lease
from workflow.storage.memory import in_words, peak_bytes
from workflow.storage.run_folder import results_folder

Line = dict[str, Any]
"""A line of the log, as `logged` writes it."""


def lease_log() -> Path:
    """Return where leases are noted: with the logs of the study's jobs."""
    return results_folder() / "logs" / "gpu-leases.jsonl"


@contextlib.contextmanager
def logged(held: Lease, job: str, log: Logger, path: Path | None = None) -> Iterator[None]:
    """Note in the job's log which devices it has, and in the lease log when it took and gave them.

    The lease log has a line of JSON for either event; a job that was killed lacks the second, which
    also has the most memory of the host that the job has had, in bytes.
    """
    path = path or lease_log()
    what = f"{', '.join(map(str, held.gpus))} by {held.given_by}, waited {held.waited_s:.1f} s"
    log.info("%s: taken %s", _append(path, "taken", held, job), what)
    try:
        yield
    finally:
        peak = peak_bytes()
        at = _append(path, "given back", held, job, host_peak_bytes=peak)
        log.info("%s: given back; the job had %s of memory at most", at, in_words(peak))


def _append(path: Path, event: str, held: Lease, job: str, **more: int) -> str:
    """Write a line into the lease log and return its time; raises NotPlainError, OSError."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {
        "time": now,
        "event": event,
        "job": job,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "gpus": [{"index": gpu.index, "uuid": gpu.uuid} for gpu in held.gpus],
        "waited_s": round(held.waited_s, 3),
        "given_by": held.given_by,
        **more,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with os.fdopen(opened, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # jobs of other hosts append to it too
        file.write(json.dumps(line) + "\n")
    return now


def leases(log: Path) -> list[Line]:
    """Return the lines of a lease log; none where there is no such file."""
    try:
        text = read_plain(log).decode()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines()]


def pairs(lines: Sequence[Line]) -> list[tuple[Line, Line]]:
    """Return the line of each lease that was taken, and the one where it was given back."""
    back = {line["pid"]: line for line in lines if line["event"] == "given back"}
    return [(line, back[line["pid"]]) for line in lines if line["event"] == "taken"]


def seconds(line: Line) -> float:
    """Return the time of a line, in seconds since the epoch."""
    return datetime.fromisoformat(line["time"]).timestamp()
