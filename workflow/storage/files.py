"""Files that are either whole or not there: temporary name, fsync, rename."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path``, which becomes ``path`` when the block ends without error.

    The file is synced to disk before the rename and its folder after it, so that a crash leaves
    the old file or the new one. On an error the temporary file is removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def atomic_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
