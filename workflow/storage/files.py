"""Text files written atomically, files that a config names, and folders that one run holds."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from typing import TextIO

from argand.atomic_files import LEFTOVERS, atomic_path


def atomic_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hexadecimal; raises OSError where it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_file(path: Path) -> bool:
    """Whether a path from a config is a regular file; False where nobody can look.

    `Path.is_file` raises OSError for a name that is too long and a folder that is closed to us.
    """
    try:
        return path.is_file()
    except OSError:
        return False


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of jobs that were killed; only for who holds the folder."""
    for path in folder.rglob(LEFTOVERS):
        path.unlink(missing_ok=True)


class FolderHeldError(RuntimeError):
    """Another process works in the folder."""


def hold_folder(folder: Path) -> TextIO:
    """Take the folder for this process; keep the returned file open for as long as it is needed.

    The lock belongs to the kernel, which drops it when the process ends, however it ends. Raises
    FolderHeldError with the holder's process number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / ".lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise FolderHeldError(
            f"{folder}: another run (process {holder}) works here; wait for it or end it"
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock
