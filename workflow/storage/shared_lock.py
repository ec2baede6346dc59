"""Lock files that processes of different users take in turn, in a folder anyone may write to."""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

from argand.runtime.files.plain_files import NotPlainError, open_plain

from workflow.storage.failures import printable

_MARK = "argand"
_NOTE_BYTES = 200
_OPENING_S = 2.0
"""Seconds to wait for the creator of a file to open it to others."""


class LockRefusedError(RuntimeError):
    """A lock file is not one of ours, or may not be opened."""


class SharedLock:
    """An exclusive lock on a file, for all users of the machine; made where there is none.

    The kernel drops it when the process ends, however it ends; children that are forked let go of
    it. The file is never removed, because one process could then lock the old file and another the
    new one. It holds a note about the holder, which is for people only: anyone may write it.

    Raises LockRefusedError where the path is anything else than a regular file with one name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _open(path)
        self._locked = False
        _open_locks.add(self)

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def take(self) -> None:
        """Wait for the lock; the kernel hands it on in the order of arrival."""
        while not self._locked:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._settle()

    def try_take(self) -> bool:
        """Take the lock if nobody has it, and say whether it is taken."""
        while not self._locked:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            self._settle()
        return True

    def _settle(self) -> None:
        """Go over to the file of this name where what was locked has been removed meanwhile."""
        try:
            named = self.path.lstat()
        except FileNotFoundError:
            named = None
        ours = os.fstat(self._file)
        if named is not None and (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino):
            self._locked = True
            return
        self.close()
        self._file = _open(self.path)

    def release(self) -> None:
        """Give the lock back and wipe its note; it can be taken again."""
        if self._locked:
            self.describe("")
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._locked = False

    def close(self) -> None:
        """Close the file, which gives the lock back where nothing else did."""
        self._locked = False
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def describe(self, note: str) -> None:
        """Leave a note of one line for those who wait; nothing where the file is not ours to write.

        A file that holds anything but a note was moved here from elsewhere and is left as it is.
        """
        text = f"{_MARK} {note}\n".encode()[:_NOTE_BYTES] if note else b""
        try:
            if not os.pread(self._file, 1, 0) or self.note():
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, text, 0)
        except OSError:
            return

    def note(self) -> str:
        """Return the note of the one who holds the lock; empty where there is none."""
        try:
            text = os.pread(self._file, _NOTE_BYTES, 0).decode("utf-8", "replace")
        except OSError:
            return ""
        mark, _, note = text.partition("\n")[0].partition(" ")
        return printable(note) if mark == _MARK else ""


_open_locks: weakref.WeakSet[SharedLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    # A forked child shares the lock: it closes it; to unlock it would take it from the parent.
    for lock in _open_locks:
        lock.close()


os.register_at_fork(after_in_child=_let_go_in_child)


def _open(path: Path) -> int:
    deadline = time.monotonic() + _OPENING_S
    while (file := _open_or_create(path, deadline)) is None:
        pass
    return file


def _open_or_create(path: Path, deadline: float) -> int | None:
    """Return a file descriptor; None where it is to be tried again.

    An existing file is opened without O_CREAT: with it Linux refuses another user's file in a
    folder like /tmp (fs.protected_regular). A lock needs no right to write, only the note does.
    """
    for access in (os.O_RDWR, os.O_RDONLY):
        try:
            return open_plain(path, access)
        except FileNotFoundError:
            break
        except PermissionError as error:
            if access == os.O_RDWR:
                continue
            if time.monotonic() > deadline:
                raise LockRefusedError(f"{path}: {error.strerror}; it must be readable") from None
            time.sleep(0.02)
            return None
        except NotPlainError as error:
            raise LockRefusedError(str(error)) from None
        except OSError as error:
            raise LockRefusedError(f"{path}: {error.strerror}; a lock must be a file") from None
    try:
        file = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    except (FileExistsError, NotPlainError):
        return None
    except OSError as error:
        raise LockRefusedError(f"{path}: {error.strerror}; locks cannot be made there") from None
    os.fchmod(file, 0o666)  # whatever the umask: others take the same lock
    return file
