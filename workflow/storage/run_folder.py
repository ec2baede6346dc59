"""The folder of results: one run holds it, and only jobs of that run put files into it.

A run that is killed leaves jobs behind: on a cluster they go on running, or wait in the scheduler's
queue. The run that holds the folder next does their work again, perhaps with another study. So
every job knows the name of its run, and once another run holds the folder it puts nothing there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pwd
import secrets
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from argand.runtime.files.plain_files import open_plain, read_plain
from argand.runtime.files.whole_files import LEFTOVERS, atomic_path

from workflow.storage.failures import printable, write_error
from workflow.storage.places import unusable_place

RESULTS = Path("results")
"""Where results are, from the folder that runs and their jobs work in: each study's in a folder of
its own within it, unless the study has another one."""
FOLDER = "ARGAND_RESULTS"
"""The environment variable with the folder of a job's study."""
RUN = "ARGAND_RUN"
"""The environment variable with the name of a job's run; what is not a job has none."""

_LONGEST_NOTE = 200
_LONGEST_PATH = 4096
_TRIES, _PAUSE_S = 10, 0.01
"""How often a lock is tried, and the seconds between: `check_folder` has it for microseconds."""
_held: list[TextIO] = []
"""Files that are open as long as the process lives: a file that nothing refers to is closed, and
the lock is gone with it."""


class FolderHeldError(RuntimeError):
    """Another process works in the folder, or nobody can say whether one does."""


class ReplacedRunError(RuntimeError):
    """Another run has taken the folder since the run of this job."""


def name_run(study: str | None = "") -> None:
    """Give this process and the jobs that it will start the name of a new run.

    It ends with a digest of the study as it is read, by which `check_study` knows it. With None
    they are jobs of no run, and no later run keeps them from writing.
    """
    os.environ[RUN] = "" if study is None else f"{secrets.token_hex(8)}-{_digest(study)}"


def check_study(study: str) -> None:
    """Raise ReplacedRunError where this is a job of a run that read another study.

    Snakemake notes the parameters that the run read, whatever a job of a cluster's computes.
    """
    ours = os.environ.get(RUN)
    if ours and ours.rpartition("-")[2] != _digest(study):
        raise ReplacedRunError(
            "the study was edited since the run of this job began; put it back for the jobs that "
            "wait, or run again, once this run has ended, for what it is now. Nothing was written"
        )


def _digest(study: str) -> str:
    return hashlib.sha256(study.encode()).hexdigest()[:16]


def use_folder(folder: Path) -> None:
    """Give this process and the jobs that it will start the folder of their study's results."""
    os.environ[FOLDER] = str(folder)


def results_folder() -> Path:
    """Return the folder of the results that this process makes."""
    return Path(os.environ.get(FOLDER) or RESULTS)


def claim_folder(study: Path, folder: Path | None = None) -> None:
    """Note that a held folder has the results of this study file, so that no other's go there.

    The file counts by its path from the folder that runs work in, where both lie within that.
    Raises FolderHeldError where the folder has another's.
    """
    folder = folder or results_folder()
    note = folder / ".study"
    try:
        file = open_plain(note, os.O_RDWR | os.O_CREAT)
        with os.fdopen(file, "r+", encoding="utf-8", errors="replace") as text:
            owner = text.read(_LONGEST_PATH).rstrip("\n")
            if not owner:
                text.write(f"{_name_of(study, folder)}\n")
    except OSError as error:
        raise FolderHeldError(f"{note}: cannot be read or written: {error}") from None
    _refuse_other_study(owner, study, folder)


def study_in(folder: Path) -> str:
    """Return the name of the study whose results a folder has: its file's, else the folder's."""
    note = folder / ".study"
    try:
        owner = read_plain(note).decode("utf-8", "replace").rstrip("\n") if note.exists() else ""
    except OSError:
        owner = ""
    return Path(owner).stem or folder.absolute().name


def check_folder(study: Path, folder: Path) -> None:
    """Raise FolderHeldError where a folder has another study's results or another run works there.

    Nothing is written or taken, so that a run may be refused before it starts. A file in the
    folder's place is refused too, and one to which nothing can be written.
    """
    note, lock = folder / ".study", _lock_file(folder)
    if wrong := unusable_place(folder):
        raise FolderHeldError(wrong)
    try:
        owner = read_plain(note).decode("utf-8", "replace").rstrip("\n") if note.exists() else ""
        _refuse_other_study(owner, study, folder)
        if not lock.exists():
            return
        with os.fdopen(open_plain(lock, os.O_RDONLY), encoding="utf-8", errors="replace") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _held_by(file, folder) from None
    except OSError as error:
        raise FolderHeldError(f"{folder}: cannot be read: {error}") from None


def _name_of(study: Path, folder: Path) -> str:
    """Return a study's path: from here where it and the folder lie here, so that both may move."""
    path, here = study.resolve(), Path.cwd()
    both = path.is_relative_to(here) and folder.resolve().is_relative_to(here)
    return str(path.relative_to(here) if both else path)


def _refuse_other_study(owner: str, study: Path, folder: Path) -> None:
    name, note = _name_of(study, folder), folder / ".study"
    if owner and owner != name:
        raise FolderHeldError(
            f"{folder}: has the results of {printable(owner)}, not of {name}; give this study "
            "another folder (argand: --out PATH, make: OUT=PATH, snakemake: --config out=PATH), "
            f"or remove {note} if that file was renamed"
        )


def hold_folder(folder: Path | None = None) -> TextIO:
    """Take the folder for this process until it ends; closing the returned file gives it back.

    The lock belongs to the kernel, which drops it when the process ends, however it ends. This
    module keeps the file open whatever becomes of the returned object, and children that are
    forked let go of it; programs that are started never have it. The file says who holds the
    folder, and the name of the run. Raises FolderHeldError with the holder.
    """
    folder = folder or results_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open_plain(_lock_file(folder), os.O_RDWR | os.O_APPEND | os.O_CREAT)
    except OSError as error:
        raise FolderHeldError(f"{folder}: cannot be held: {error}") from None
    lock = os.fdopen(file, "a+")
    try:
        _take(lock)
    except BlockingIOError:
        with lock:
            raise _held_by(lock, folder) from None
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


def _take(lock: TextIO) -> None:
    """Lock the file for this process alone. Raises BlockingIOError where another keeps it."""
    for _ in range(_TRIES - 1):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_PAUSE_S)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _held_by(lock: TextIO, folder: Path) -> FolderHeldError:
    lock.seek(0)
    holder = printable(lock.readline(_LONGEST_NOTE).strip()) or "unknown"
    return FolderHeldError(
        f"{folder}: another run (process {holder}) works here; wait for it or end it"
    )


def _this_process() -> str:
    """Return process, user, host and the time of now, for another run's message."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may have no name for its user
        user = f"user {os.getuid()}"
    since = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
    return f"{os.getpid()} of {user} on {socket.gethostname()}, since {since}"


def _let_go_in_child() -> None:
    # A forked child shares the lock: it closes it; to unlock it would take it from the parent.
    for lock in _held:
        lock.close()


os.register_at_fork(after_in_child=_let_go_in_child)


def remove_leftovers(folder: Path | None = None) -> None:
    """Remove the temporary files of earlier runs' jobs; only for the holder of the folder.

    A job that still writes one could not give it its name any more. Raises FolderHeldError where
    one cannot be removed.
    """
    folder = folder or results_folder()
    for path in folder.rglob(LEFTOVERS):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            what = "a folder" if path.is_dir() else str(error.strerror)
            raise FolderHeldError(
                f"{path}: found {what} under the name of a temporary file; move or remove it"
            ) from None


def check_run(folder: Path | None = None) -> None:
    """Raise ReplacedRunError where this is a job of a run that no longer has the folder.

    A run that has ended keeps it until the next one begins.
    """
    ours = os.environ.get(RUN)
    if not ours:
        return
    folder = folder or results_folder()
    try:
        holder, _, run = read_plain(_lock_file(folder)).decode("utf-8", "replace").partition("\n")
    except FileNotFoundError:
        return  # where a job's files are copied to and fro, nobody else reaches them
    except OSError as error:
        raise ReplacedRunError(f"{folder}: which run works here is unknown: {error}") from None
    if run.strip() != ours:
        raise ReplacedRunError(
            f"{folder}: another run (process {holder}) has worked here since this job was "
            "submitted, and does its work; nothing was written"
        )


@contextlib.contextmanager
def result_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path that becomes ``path`` as by `atomic_path`, if `check_run` lets it.

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
