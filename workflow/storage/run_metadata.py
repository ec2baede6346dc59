"""Checks that Snakemake has metadata of results: it takes those without for up to date.

The metadata, parameters and code of each result, lie in `.snakemake` where Snakemake runs. They are
missing where results were made from another folder or under another path, or `.snakemake` was
removed. So a folder of results has a token, and the `.snakemake` that knows them has a file of the
token's name with the path that it knows them by.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from argand.runtime.files.plain_files import read_plain
from argand.runtime.files.whole_files import atomic_path

from workflow.storage.run_folder import FolderHeldError

_TOKENS = Path(".snakemake") / "argand"
_RESULTS = ("answer.html", "answer.md", "manifest.json", "report.html", "study.yaml", "products")


def check_metadata(folder: Path) -> None:
    """Raise FolderHeldError where there are results that nothing here knows by this path.

    Files of their names that no run made, a user's own among them, are such results too.
    """
    note = folder / ".metadata"
    if not os.path.lexists(note):
        if not any(os.path.lexists(folder / name) for name in (".lock", ".study")):
            _refuse_others(folder)
        return
    try:
        token = read_plain(note).decode("ascii", "replace").strip()
    except OSError as error:
        raise FolderHeldError(f"{note}: cannot be read: {error}") from None
    known = _path_of(token)
    if known == str(folder):
        return
    what = f"has results of which {Path.cwd()}/.snakemake knows nothing"
    why = "they were made from another folder, or .snakemake was removed. Run in that folder"
    if known:
        what = f"has results that {Path.cwd()}/.snakemake knows as {known}"
        why = "the folder was moved, or is named otherwise. Give it that path again"
    raise FolderHeldError(
        f"{folder}: {what}, so nobody can say which are of the study as it is now; {why}, or "
        f"remove {folder}, or {note} to take all that is there for up to date"
    )


def _refuse_others(folder: Path) -> None:
    for name in _RESULTS:
        if os.path.lexists(folder / name):
            raise FolderHeldError(
                f"{folder}: has {name}, which no run made there (it has no .study), and which a "
                "run would replace or take for its own; give this study a folder for results "
                "alone (argand: --out PATH, make: OUT=PATH, snakemake: --config out=PATH)"
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
        (_TOKENS / token).write_text(f"{folder}\n")
        with atomic_path(note) as path:
            path.write_text(f"{token}\n")
    except OSError as error:
        raise FolderHeldError(f"{note}: cannot be written: {error}") from None


def _path_of(token: str) -> str:
    """Return the path that this folder's `.snakemake` knows results by; empty of others' tokens."""
    try:
        held = read_plain(_TOKENS / token) if token.isalnum() else b""
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise FolderHeldError(f"{_TOKENS / token}: cannot be read: {error}") from None
    return held.decode("utf-8", "replace").removesuffix("\n")
