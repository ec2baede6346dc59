"""Checks that a run can write to its folders, before Snakemake fails there with a traceback."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path


def unusable_place(folder: Path) -> str:
    """Return why no run can have this folder of results; empty where one can.

    Snakemake would not say at all that a report was not written.
    """
    # Here: jobs import this module, and have no use for it.
    from platformdirs import user_cache_path

    if link := _lost_link(folder):
        target = os.path.realpath(link)
        return f"{link}: a link to {target}, where nothing is: mount or make that folder"
    above = visible_above(folder)
    if not above.is_dir():
        return f"{above}: found a file where there must be a folder of results"
    cache = visible_above(user_cache_path("snakemake"))
    for place, whose in (
        (above, "results"),
        (Path.cwd(), "what Snakemake keeps where it runs"),
        (cache, "Snakemake's cache (XDG_CACHE_HOME names another folder)"),
    ):
        if not os.access(place, os.W_OK | os.X_OK):
            return f"{place.absolute()}: must be a folder that can be written to, for {whose}"
    return ""


def visible_above(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that is there and may be seen."""
    return _nearest(folder, Path.exists) or Path()


def _lost_link(folder: Path) -> Path | None:
    """Return the folder, or one above it, where that is a link to nothing."""
    return _nearest(
        folder, lambda path: path.is_symlink() and not os.path.lexists(os.path.realpath(path))
    )


def _nearest(folder: Path, is_wanted: Callable[[Path], bool]) -> Path | None:
    """Return the folder, or the nearest one above it, that is wanted and may be seen."""
    for path in (folder, *folder.parents):
        with contextlib.suppress(PermissionError):
            if is_wanted(path):
                return path
    return None
