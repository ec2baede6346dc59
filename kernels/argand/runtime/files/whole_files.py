"""Files that are written whole or not at all: temporary name, fsync, rename."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from argand.runtime.files.plain_files import refuse_other

LEFTOVERS = ".*.????????.part"
"""The names of temporary files, as a pattern: a process that is killed leaves its own."""


@contextlib.contextmanager
def atomic_path(path: Path, permitted: Callable[[], None] | None = None) -> Iterator[Path]:
    """Yield a temporary path, which becomes ``path`` when the block ends without error.

    The file is synced to disk before the rename and its folder after it, so that a crash leaves
    the old file or the new one, and others may read it or write the same meanwhile. On an error the
    temporary file is removed. ``permitted`` is called last before the rename, which an error from
    it prevents. Raises NotPlainError where ``path`` is a folder, a pipe or the like.
    """
    path = Path(path)
    refuse_other(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    temporary.touch(exist_ok=False)  # with the permissions of the umask, unlike tempfile's
    try:
        yield temporary
        _sync(temporary)
        if permitted is not None:
            permitted()
        temporary.replace(path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
