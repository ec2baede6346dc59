"""What Snakemake knows of results: parameters and code of each, in `.snakemake` where it runs.

Where that is missing, because they were made from another folder or it was removed, Snakemake takes
each result that is there for up to date, whatever the study is now. So a folder of results has a
token, and the `.snakemake` that knows them has a file of its name.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from argand.runtime.files import atomic_path
from argand.runtime.plain_files import read_plain

from workflow.storage.run_folder import FolderHeldError

_TOKENS = Path(".snakemake") / "argand"


def check_metadata(folder: Path) -> None:
    """Raise FolderHeldError where results are there of which nothing is known here."""
    note = folder / ".metadata"
    if not os.path.lexists(note):
        return
    try:
        token = read_plain(note).decode("ascii", "replace").strip()
    except OSError as error:
        raise FolderHeldError(f"{note}: cannot be read: {error}") from None
    if not token.isalnum() or not (_TOKENS / token).exists():
        raise FolderHeldError(
            f"{folder}: has results of which {Path.cwd()}/.snakemake knows nothing, so nobody can "
            "say which are of the study as it is now; they were made from another folder, or "
            f".snakemake was removed. Run in that folder, or remove {folder}, or {note} to take "
            "all that is there for up to date"
        )


def note_metadata(folder: Path) -> None:
    """Note in a held folder that the `.snakemake` of this one knows its results."""
    note = folder / ".metadata"
    if note.exists():
        check_metadata(folder)
        return
    token = secrets.token_hex(8)
    try:
        _TOKENS.mkdir(parents=True, exist_ok=True)
        (_TOKENS / token).touch()
        with atomic_path(note) as path:
            path.write_text(f"{token}\n")
    except OSError as error:
        raise FolderHeldError(f"{note}: cannot be written: {error}") from None
