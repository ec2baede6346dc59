"""Room on a disk for a file whose size is known before it is written."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from workflow.storage.memory import in_words


class NoRoomError(OSError):
    """A disk has no room for a file; nothing of it was written."""


def check_room(path: Path, size: int) -> None:
    """Raise NoRoomError where the disk of a file's folder has fewer free bytes than ``size``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if size > free:
        raise NoRoomError(
            errno.ENOSPC,
            f"{os.strerror(errno.ENOSPC)}: {path} needs {in_words(size)} of disk, "
            f"{in_words(free)} are free there; make room, or the workload smaller",
        )
