"""Opening files in folders of others: no link is followed, no pipe blocks."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


class NotPlainError(OSError):
    """A path is not a regular file with one name."""


def open_plain(path: Path, flags: int, *, within: int | None = None) -> int:
    """Open a regular file that has no other name, and return its descriptor.

    It never truncates: that is for `os.ftruncate` after the check. A file that is made has the mode
    666 less the umask. Programs that are started from here do not inherit the descriptor.

    Args:
        path: the file.
        flags: flags of `os.open`, such as ``os.O_RDWR | os.O_CREAT``.
        within: descriptor of the folder that ``path.name`` is in, instead of ``path.parent``.

    Raises NotPlainError with what was found instead, else OSError as `os.open` does.
    """
    where = path if within is None else path.name
    try:
        file = os.open(where, flags | _FLAGS, 0o666, dir_fd=within)
    except OSError as error:
        _refuse(path, _status(where, within))
        error.filename = str(path)
        raise
    try:
        _refuse(path, os.fstat(file))
    except NotPlainError:
        os.close(file)
        raise
    return file


def read_plain(path: Path) -> bytes:
    """Return the content of such a file; errors as in `open_plain`."""
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
        return file.read()


def refuse_other(path: Path) -> None:
    """Raise NotPlainError where a path exists and is neither a regular file nor a link.

    A rename onto the path then replaces at most a file or a link.
    """
    found = _status(path, None)
    if found is not None and not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
        _refuse(path, found)


def _status(where: Path | str, within: int | None) -> os.stat_result | None:
    try:
        return os.stat(where, dir_fd=within, follow_symlinks=False)
    except OSError:
        return None


def _refuse(path: Path, found: os.stat_result | None) -> None:
    if found is None:
        return
    what = next((words for is_kind, words in _KINDS if is_kind(found.st_mode)), "")
    if not what and stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        what = f"a file with {found.st_nlink} names"
    if what:
        raise NotPlainError(
            f"{path}: found {what} where there must be a regular file with one name; "
            "move or remove it"
        )
