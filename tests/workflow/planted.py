"""Things that somebody may put under a name that a file is to have."""

from __future__ import annotations

import os
import socket
from pathlib import Path

PLANTED = {
    "link": "a symbolic link",
    "dangling": "a symbolic link",
    "names": "a file with 2 names",
    "pipe": "a pipe",
    "folder": "a folder",
    "socket": "a socket",
}
"""Each kind, and how an error names it."""


def planted(path: Path, what: str) -> Path:
    """Put that kind there, links to a file beside it; the file, whose text is ``mine``."""
    precious = path.with_name("precious")
    path.parent.mkdir(parents=True, exist_ok=True)
    precious.write_text("mine")
    if what == "link":
        path.symlink_to(precious)
    elif what == "dangling":
        path.symlink_to(path.with_name("none"))
    elif what == "names":
        path.hardlink_to(precious)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        before = Path.cwd()
        os.chdir(path.parent)  # a socket's path may be no longer than 108 bytes
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        finally:
            os.chdir(before)
    return precious
