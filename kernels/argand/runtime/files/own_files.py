"""Files that are trusted, such as compiled kernels: only their user can have written them.

A folder and a file are the user's own where the user or root owns them, no link leads to them, and
others cannot write there. A group may write where the user is its only member, as on many systems.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from argand.runtime.files.plain_files import open_plain
from argand.runtime.files.whole_files import atomic_path

_OTHERS_READ = 0o644


class NotOwnError(OSError):
    """A file that another user may have written."""


class NotOwnFolderError(NotOwnError):
    """A folder that another user may write to."""


@contextlib.contextmanager
def own_folder(path: Path) -> Iterator[int]:
    """Yield a descriptor of a folder of the user's own.

    Raises NotOwnFolderError with what is wrong and what to do; FileNotFoundError where there is
    none.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except NotADirectoryError:
        what = "a symbolic link" if path.is_symlink() else "no folder"
        raise NotOwnFolderError(
            f"{path} is {what}; name a folder of your own, without links"
        ) from None
    try:
        _check(path, os.fstat(folder), NotOwnFolderError)
        yield folder
    finally:
        os.close(folder)


def read_own(path: Path) -> bytes:
    """Return the content of a file of the user's own, read from the descriptor that was checked.

    Raises NotOwnError, NotPlainError, FileNotFoundError.
    """
    with own_folder(path.parent) as folder:
        file = open_plain(path, os.O_RDONLY, within=folder)
        with os.fdopen(file, "rb") as opened:
            _check(path, os.fstat(file), NotOwnError)
            return opened.read()


def write_own(path: Path, content: bytes) -> None:
    """Write a file of the user's own atomically, and make its folder; others may read both.

    Raises NotOwnError, OSError.
    """
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir(mode=0o755)
    with own_folder(path.parent), atomic_path(path) as temporary:
        temporary.chmod(_OTHERS_READ)  # whatever the umask, no other user writes
        temporary.write_bytes(content)


def _check(path: Path, found: os.stat_result, kind: type[NotOwnError]) -> None:
    if found.st_uid not in (os.geteuid(), 0):
        raise kind(
            f"{path} belongs to user {_user_name(found.st_uid)}, who may have put anything there; "
            "use one of your own, or root's"
        )
    by_group = found.st_mode & stat.S_IWGRP and not _is_private(found.st_gid)
    if found.st_mode & stat.S_IWOTH or by_group:
        who = "its group" if by_group else "everybody"
        shared = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
        advice = (
            "use a folder of your own" if shared
            else f"look at what is in it, then: chmod go-w {path}"
        )  # fmt: skip
        raise kind(f"{path} can be written by {who}, who may have put anything there; {advice}")


def _is_private(group: int) -> bool:
    """Return whether a group is the user's alone: of the user's name, without other members."""
    try:
        found, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    own = found.gr_name == user.pw_name and group == user.pw_gid
    return own and set(found.gr_mem) <= {user.pw_name}


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
