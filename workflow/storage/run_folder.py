"""The folder of results: one run holds it, and only jobs of that run put files into it.

A run that is killed leaves jobs behind: on a cluster they go on running, or wait in the scheduler's
queue. The run that holds the folder next does their work again, perhaps with another study. So
every job knows the name of its run, and once another run holds the folder it puts nothing there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import secrets
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from argand.runtime.files import LEFTOVERS, atomic_path
from argand.runtime.plain_files import open_plain, read_plain

from workflow.storage.failures import write_error

RESULTS = Path("results")
"""Where a study's results are, from the folder that a run and its jobs work in."""
RUN = "ARGAND_RUN"
"""The environment variable with the name of a job's run; what is not a job has none."""

_LONGEST_NOTE = 200
_held: list[TextIO] = []
"""Files that are open as long as the process lives: a file that nothing refers to is closed, and
the lock is gone with it."""


class FolderHeldError(RuntimeError):
    """Another process works in the folder, or nobody can say whether one does."""


class ReplacedRunError(RuntimeError):
    """Another run has taken the folder since the run of this job."""


def name_run() -> None:
    """Give this process and the jobs that it will start the name of a new run."""
    os.environ[RUN] = secrets.token_hex(8)


def hold_folder(folder: Path = RESULTS) -> TextIO:
    """Take the folder for this process until it ends; closing the returned file gives it back.

    The lock belongs to the kernel, which drops it when the process ends, however it ends. This
    module keeps the file open whatever becomes of the returned object, and children that are
    forked let go of it; programs that are started never have it. The file says who holds the
    folder, and the name of the run. Raises FolderHeldError with the holder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open_plain(_lock_file(folder), os.O_RDWR | os.O_APPEND | os.O_CREAT)
    except OSError as error:
        raise FolderHeldError(f"{folder}: cannot be held: {error}") from None
    lock = os.fdopen(file, "a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = _printable(lock.readline(_LONGEST_NOTE)) or "unknown"
        lock.close()
        raise FolderHeldError(
            f"{folder}: another run (process {holder}) works here; wait for it or end it"
        ) from None
    except OSError as error:
        lock.close()
        raise FolderHeldError(
            f"{folder}: cannot be locked ({error.strerror}), so another run could work here too; "
            "run on a file system with locks (flock)"
        ) from None
    lock.truncate(0)
    lock.write(f"{_this_process()}\n{os.environ.get(RUN, '')}\n")
    lock.flush()
    os.fsync(lock.fileno())
    _held.append(lock)
    return lock


def _this_process() -> str:
    """Process, user, host and the time of now, for another run's message."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may have no name for its user
        user = f"user {os.getuid()}"
    since = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
    return f"{os.getpid()} of {user} on {socket.gethostname()}, since {since}"


def _printable(note: str) -> str:
    """A note without what would control a terminal: anyone who may write the file wrote it."""
    return "".join(c if c.isprintable() else "?" for c in note.strip())


def _let_go_in_child() -> None:
    # A forked child shares the lock: it closes it; to unlock it would take it from the parent.
    for lock in _held:
        lock.close()


os.register_at_fork(after_in_child=_let_go_in_child)


def remove_leftovers(folder: Path = RESULTS) -> None:
    """Remove the temporary files of earlier runs' jobs; only for who holds the folder.

    A job that still writes one could not give it its name any more. Raises FolderHeldError where
    one cannot be removed.
    """
    for path in folder.rglob(LEFTOVERS):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            what = "a folder" if path.is_dir() else str(error.strerror)
            raise FolderHeldError(
                f"{path}: found {what} under the name of a temporary file; move or remove it"
            ) from None


def check_run(folder: Path = RESULTS) -> None:
    """Raise ReplacedRunError where this is a job of a run that no longer has the folder.

    A run that has ended keeps it until the next one begins.
    """
    ours = os.environ.get(RUN)
    if not ours:
        return
    try:
        holder, _, run = read_plain(_lock_file(folder)).decode("utf-8", "replace").partition("\n")
    except FileNotFoundError:
        return  # where a job's files are copied to and fro, nobody else reaches them
    except OSError as error:
        raise ReplacedRunError(f"{folder}: which run works here cannot be told: {error}") from None
    if run.strip() != ours:
        raise ReplacedRunError(
            f"{folder}: another run (process {holder}) has worked here since this job was "
            "submitted, and does its work; nothing was written"
        )


@contextlib.contextmanager
def result_path(path: Path) -> Iterator[Path]:
    """A temporary path that becomes ``path`` as `atomic_path` does it, if `check_run` lets it.

    Raises WriteError where the file cannot be made, synced or given its name.
    """
    inside = False
    try:
        with atomic_path(path, check_run) as temporary:
            inside = True
            yield temporary
            inside = False
    except OSError as error:
        check_run()  # the run that has the folder now has removed the temporary file
        if inside or isinstance(error, FileNotFoundError):
            raise
        raise write_error(path, error) from error


def _lock_file(folder: Path) -> Path:
    return folder / ".lock"
