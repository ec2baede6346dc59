"""Disks without room, and disks that nobody may write: the error says so, and blames no file."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.attack.campaign import Attempt, NotTriedError, require
from benchmarks.attack.studies import Run, difference, prepare

_DISK = 32 << 20
_BLAME = ("truncated or damaged", "delete it")
"""Words of an error about a file that is not whole."""


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a file system of 32 MiB in a folder; NotTriedError where this user may not."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        raise NotTriedError("this user may not mount a tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def full(attempt: Attempt) -> None:
    """Give less room than a study takes, then enough: where nobody may mount, short files only."""
    size = sum(p.stat().st_size for p in attempt.ground.finished.rglob("*") if p.is_file())
    room = int(attempt.rng.uniform(0.01, 1.0) * size)
    with contextlib.ExitStack() as opened:
        try:
            opened.enter_context(small_disk(attempt.folder))
            words = "No space left on device"
        except NotTriedError:
            words = "File too large"
        prepare(attempt.folder)
        if words == "File too large":
            short = room // 20
            run = _run(attempt, lambda: _short_files(short))
        else:
            free = shutil.disk_usage(attempt.folder).free
            (attempt.folder / "filler").write_bytes(bytes(max(0, free - room)))
            run = _run(attempt)
        status, said = run.finish(), run.said
        (attempt.folder / "filler").unlink(missing_ok=True)
        if status:
            _check_error(attempt, words, said)
        _completes(attempt)


def _run(attempt: Attempt, before: Callable[[], None] | None = None) -> Run:
    """Return a run whose words go to another disk, as those on a terminal do."""
    return Run(attempt.ground.root, attempt.folder, before=before, said=attempt.ground.folder)


def _short_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def read_only(attempt: Attempt) -> None:
    """Make a file system read-only after some of the work, then writable again."""
    with small_disk(attempt.folder):
        prepare(attempt.folder)
        if attempt.rng.random() < 0.7:  # some of a finished run is there
            attempt.ground.copy(attempt.folder)
            gone = attempt.rng.choice(["staged", "runs", "records", "products", "tables"])
            shutil.rmtree(attempt.folder / "results" / gone)
        _mounted(attempt.folder, "ro")
        run = _run(attempt)
        status, said = run.finish(), run.said
        _mounted(attempt.folder, "rw")
        require(status != 0, "a run on a read-only disk ended with 0")
        _check_error(attempt, "Read-only file system", said)
        _completes(attempt)


def _mounted(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)


def _check_error(attempt: Attempt, words: str, said: str) -> None:
    """Check that the error names what failed, and no file that is whole."""
    blamed = [line for line in said.splitlines() if any(text in line for text in _BLAME)]
    require(not blamed, f"the error blames a healthy file: {blamed[:1]}")
    logs = attempt.folder / "results" / "logs"
    found = said + "".join(p.read_text(errors="replace") for p in logs.rglob("*.log"))
    require(words in found, f"the error does not say {words!r}: {said[-300:]}")


def _completes(attempt: Attempt) -> None:
    run = Run(attempt.ground.root, attempt.folder)
    status = run.finish()
    require(status == 0, f"with room the same command ended with {status}: {run.said[-300:]}")
    found = difference(attempt.folder, attempt.ground.finished)
    require(not found, f"with room {found}")
