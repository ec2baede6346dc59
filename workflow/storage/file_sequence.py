"""Files of one recording, which a study names by a pattern: name.0000.raw, name.0001.raw, ..."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

from workflow.config.formats import FORMATS
from workflow.storage.files import is_file
from workflow.storage.input_operand import InputError

GLOB = re.compile(r"[*?[]")
"""Characters of a pattern. A path of an existing file is none."""
_NUMBERED = re.compile(r"(.*?)(\d+)(\.[A-Za-z]\w*)?", re.DOTALL)
_MOST_MISSING = 5
"""Missing files that an error names."""
_MOST_NUMBERS = 100_000
"""Numbers up to which files may be missing."""


def is_pattern(path: Path) -> bool:
    """Return whether a path stands for the files that match it; one that is there is a file."""
    return bool(GLOB.search(path.name)) and not is_file(path)


def files_named(path: Path, format_name: str) -> list[Path]:
    """Return the files that an input's path names: itself, or those that match it, by their names.

    Of a format that is several files they are all of these. It is the path itself too where none
    matches. Folders are not searched by a pattern.
    """
    if path.suffix in FORMATS[format_name].beside:
        return [path.with_suffix(suffix) for suffix in FORMATS[format_name].beside]
    if not FORMATS[format_name].has_sequences or not is_pattern(path):
        return [path]
    try:
        beside = list(path.parent.iterdir())
    except OSError:
        return [path]
    return sorted(one for one in beside if fnmatchcase(one.name, path.name)) or [path]


def recording(path: Path, format_name: str) -> list[Path]:
    """Return `files_named` in the order of their numbers.

    Raises InputError where a pattern matches none, files of several recordings, or not all: one is
    missing where the pattern matches the name of a number below the largest, from 0 on.
    """
    files = files_named(path, format_name)
    if not is_pattern(path):
        return files
    if files == [path]:
        raise InputError(f"input.file: no file matches {path} (looked in {Path.cwd()})")
    found = {one: _NUMBERED.fullmatch(one.name) for one in files}
    parts = {one: match.groups() if match else (one.name, "", "") for one, match in found.items()}
    stem, first, suffix = parts[files[0]]
    for one in files[1:]:
        if (parts[one][0], parts[one][2]) != (stem, suffix) or not parts[one][1]:
            raise InputError(
                f"input.file: {path} must match files of one recording, which differ by a number "
                f"before the suffix, got {files[0].name} and {one.name}; name fewer by the pattern"
            )
    by_number = {int(parts[one][1]): one for one in files if parts[one][1]}
    if len(by_number) < len(files) and first:
        twice = next(one for one in files if by_number[int(parts[one][1])] != one)
        other = by_number[int(parts[twice][1])]
        raise InputError(
            f"input.file: {path} matches two files of one number, {twice.name} and {other.name}"
        )
    lost = []
    width = min(len(parts[one][1]) for one in files)
    for number in range(min(_MOST_NUMBERS, max(by_number, default=0))):
        name = f"{stem}{number:0{width}d}{suffix or ''}"
        if number not in by_number and fnmatchcase(name, path.name):
            lost.append(name)
            if len(lost) > _MOST_MISSING:
                break
    if lost:
        more = ", ..." if len(lost) > _MOST_MISSING else ""
        names = ", ".join(lost[:_MOST_MISSING]) + more
        raise InputError(
            f"input.file: {path} lacks {names} of a recording, whose "
            f"last file is {by_number[max(by_number)].name}; a pattern without it, as "
            f"{stem}{'?' * max(0, width - 1)}[1-9]{suffix or ''}, reads the others"
        )
    return [by_number[number] for number in sorted(by_number)] or files
