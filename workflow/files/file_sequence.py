"""Files of one recording, which a study names by a pattern: name.0000.raw, name.0001.raw, ..."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from workflow.config.formats import FORMATS
from workflow.files.input_error import InputError
from workflow.storage.files import is_file

GLOB = re.compile(r"[*?[]")
"""Characters of a pattern. A path of an existing file is none."""
_NUMBERED = re.compile(r"(.*?)(\d+)(\.[A-Za-z]\w*)?", re.DOTALL)
_MAX_MISSING = 5
"""Missing files that an error names."""
_MAX_NUMBERS = 100_000
"""Numbers up to which files may be missing."""


def is_pattern(path: Path) -> bool:
    """Return whether a path stands for the files that match it; one that is there is a file."""
    return bool(GLOB.search(path.name)) and not is_file(path)


def files_named(path: Path, format_name: str) -> list[Path]:
    """Return the files that an input's path names: itself, or those that match it, by their names.

    They are all files of a format that is several files. It is the path itself too where none
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


class _File(NamedTuple):
    """A file whose name is a stem, the digits of a number and a suffix."""

    path: Path
    stem: str
    digits: str
    suffix: str

    @property
    def number(self) -> int:
        """The file's number within its recording."""
        return int(self.digits)


def _file(path: Path) -> _File:
    """Return a file by its path; without digits where the name has no number."""
    match = _NUMBERED.fullmatch(path.name)
    return _File(path, path.name, "", "") if match is None else _File(path, *match.groups(""))


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
    found = [_file(one) for one in files]
    _check_one_recording(path, found)
    if not found[0].digits:
        return files
    found.sort(key=lambda one: one.number)
    _check_all_are_there(path, found)
    return [one.path for one in found]


def _check_one_recording(path: Path, found: Sequence[_File]) -> None:
    """Raise InputError where files that match a pattern differ by more than their numbers."""
    first, *others = found
    for one in others:
        alike = (one.stem, one.suffix) == (first.stem, first.suffix)
        if not (alike and one.digits and first.digits):
            raise InputError(
                f"input.file: {path} must match files of one recording, which differ by a number "
                f"before the suffix, got {first.path.name} and {one.path.name}; name fewer by the "
                "pattern"
            )
    if not first.digits:
        return
    known: dict[int, _File] = {}
    for one in found:
        other = known.setdefault(one.number, one)
        if other is not one:
            raise InputError(
                f"input.file: {path} matches two files of one number, {other.path.name} and "
                f"{one.path.name}"
            )


def _check_all_are_there(path: Path, found: Sequence[_File]) -> None:
    """Raise InputError where the pattern matches numbers below the largest that have no file."""
    stem, suffix, last = found[0].stem, found[0].suffix, found[-1]
    width = min(len(one.digits) for one in found)
    known = {one.number for one in found}
    absent = (
        f"{stem}{number:0{width}d}{suffix}"
        for number in range(min(_MAX_NUMBERS, last.number))
        if number not in known
    )
    lost = list(islice((name for name in absent if fnmatchcase(name, path.name)), _MAX_MISSING + 1))
    if lost:
        more = ", ..." if len(lost) > _MAX_MISSING else ""
        raise InputError(
            f"input.file: {path} lacks {', '.join(lost[:_MAX_MISSING])}{more} of a recording, "
            f"whose last file is {last.path.name}; a pattern without it, as "
            f"{stem}{'?' * max(0, width - 1)}[1-9]{suffix}, reads the others"
        )
