"""One line for each finished step, in place of Snakemake's several."""

from __future__ import annotations

import logging
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TextIO


@dataclass(frozen=True)
class Failure:
    """A job that failed: its rule, the workload or shard it was of (empty for the study's), why."""

    step: str
    part: str
    reason: str
    log: str


@dataclass(frozen=True)
class _Job:
    title: str
    rule: str
    part: str
    log: Path | None
    before: int | None
    """Time of change, in ns, of the log of an earlier job; None without one."""
    started: float
    since: str
    """The time of day."""


class Progress(logging.Handler):
    """Prints ``time  [done/total]  step  workload  seconds  summary`` as jobs end.

    The summary is the last line of the job's log, or where a job failed before it wrote one, such
    as one that a scheduler did not take, what the executor says. On a terminal the steps under way,
    and since when, are shown on a line that is overwritten; in a dry run each step is a line.
    Snakemake's own lines about jobs are switched off in the profile.
    """

    def __init__(self, stream: TextIO | None = None, *, dry_run: bool = False) -> None:
        super().__init__(logging.INFO)
        self._dry_run = dry_run
        self._stream = stream or sys.stderr
        self._running: dict[int, _Job] = {}
        self._grouped: dict[int, str] = {}
        """Jobs that failed as parts of one job of a scheduler's, and where that job's log is."""
        self._done = 0
        self._total = 0
        self.failures: list[Failure] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Handle one of Snakemake's log events."""
        event = str(getattr(record, "event", "") or "")
        fields = record.__dict__
        if event == "run_info":
            self._total = int((fields.get("stats") or {}).get("total", 0))
        elif event == "job_info":
            self._started(fields)
        elif event == "job_finished":
            self._ended(fields["job_id"])
        elif event == "group_error":
            log = " ".join(f"see {path}" for path in fields.get("aux_logs") or [])
            self._grouped |= {part["jobid"]: log for part in fields.get("job_error_info") or []}
        elif event == "job_error":
            self._failed(fields["jobid"], str(fields.get("rule_msg") or ""))

    @staticmethod
    def is_noise(record: logging.LogRecord) -> bool:
        """Return whether a line of Snakemake's only says what ours say, or that it goes on."""
        if record.levelno > logging.INFO:
            return False
        event = str(getattr(record, "event", "") or "")
        text = record.getMessage() if isinstance(record.msg, str) else ""
        return event in ("job_finished", "progress", "resources_info") or text.startswith(
            ("Select jobs", "Execute ", "Using shell", "Conda environments")
        )

    def _started(self, fields: dict[str, Any]) -> None:
        title = fields.get("rule_msg") or fields.get("rule_name") or ""
        logs = list(fields.get("log") or [])
        log = Path(str(logs[0])) if logs else None
        if self._dry_run:
            self._print(f"would do  {title}\n")
            return
        rule = str(fields.get("rule_name") or "")
        wildcards = fields.get("wildcards") or {}
        part = str(wildcards.get("part") or wildcards.get("workload") or "")
        since = time.strftime("%H:%M")
        job = _Job(title, rule, part, log, _written(log), time.monotonic(), since)
        self._running[fields["jobid"]] = job
        self._status()

    def _failed(self, job_id: int, why: str) -> None:
        """Print that a job failed; the last line of its log shows which part of a group it was."""
        if job_id in self._grouped:
            self._ended(job_id, "FAILED with its group", self._grouped.pop(job_id))
        else:
            self._ended(job_id, "FAILED", why)

    def _ended(self, job_id: int, verdict: str = "", why: str = "") -> None:
        """Print one line; ``why`` is the executor's word where the job wrote no log."""
        job = self._running.pop(job_id, None)
        if job is None or job.title == "all":
            return
        self._done += not verdict
        width = len(str(self._total))
        counter = f"[{self._done:{width}}/{self._total}]" if self._total else f"[{self._done}]"
        seconds = time.monotonic() - job.started
        parts = [time.strftime("%H:%M:%S"), counter, f"{job.title:<34}", f"{seconds:6.1f} s"]
        said = last_line(job.log) if _written(job.log) != job.before else ""
        reason = said or " ".join(why.split())[:300]
        if verdict:
            why = reason or "ended, or was killed, without an error in its log"
            self.failures.append(Failure(job.rule, job.part, why, str(job.log or "")))
        parts += [part for part in (verdict, reason) if part]
        if verdict and job.log and (said or not why):
            parts.append(f"(see {job.log})")
        self._print("  ".join(parts) + "\n")
        self._status()

    def _status(self) -> None:
        if self._stream.isatty() and self._running:
            titles = (
                f"{' '.join(job.title.split())} since {job.since}" for job in self._running.values()
            )
            text = f"          under way: {', '.join(titles)}"
            self._print(text[: _columns(self._stream)] + "\r")

    def _print(self, text: str) -> None:
        clear = "\x1b[2K" if self._stream.isatty() else ""
        self._stream.write(clear + text)
        self._stream.flush()


class Bar:
    """A line of the terminal that says how far a job is, overwritten; it writes nothing elsewhere.

    Args:
        title: what is under way.
        total: how many of anything there are.
    """

    _WIDTH = 30
    _EVERY_S = 0.2

    def __init__(self, title: str, total: int, stream: TextIO | None = None) -> None:
        self._title, self._total = title, max(total, 1)
        self._stream = stream or sys.stderr
        self._began, self._shown = time.monotonic(), 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            self._stream.write("\x1b[2K")
            self._stream.flush()

    def show(self, done: int) -> None:
        """Show how many are done; the line is renewed a few times a second."""
        now = time.monotonic()
        if not self._stream.isatty() or (now - self._shown < self._EVERY_S and done < self._total):
            return
        self._shown = now
        part = done / self._total
        left = (now - self._began) * (1 - part) / part if part else 0.0
        bar = "#" * int(self._WIDTH * part)
        text = f"{self._title}  [{bar:.<{self._WIDTH}}] {100 * part:3.0f} %  {left:.0f} s left"
        self._stream.write(f"\x1b[2K{text[: _columns(self._stream)]}\r")
        self._stream.flush()


def _columns(stream: TextIO) -> int:
    """Return how long a line may be that is overwritten: of one that wraps, a part would stay."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return (columns or 80) - 1


def _written(log: Path | None) -> int | None:
    return log.stat().st_mtime_ns if log is not None and log.is_file() else None


def last_line(log: Path | None) -> str:
    """Return the last line of a log that is not blank; empty where there is none."""
    if log is None or not log.is_file():
        return ""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def attach(logger: logging.Logger, *, dry_run: bool) -> Progress:
    """Let a logger of Snakemake's show `Progress`, which is returned, and no line twice.

    Snakemake reads the Snakefile of a module again for each of its ``use rule``.
    """
    known = next((one for one in logger.handlers if isinstance(one, Progress)), None)
    if known is not None:
        return known
    for handler in logger.handlers:
        handler.addFilter(lambda record: not Progress.is_noise(record))
    progress = Progress(dry_run=dry_run)
    logger.addHandler(progress)
    return progress
