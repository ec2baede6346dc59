"""JSON between the steps, each file with a SHA-256 of what it says.

A bit that is flipped in a number is a number as a rule, and JSON lines that are cut short are fewer
rows. So the last line of JSON lines has how many there are and a digest of their bytes, and a JSON
object its digest among its keys. Both are JSON to others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from argand.runtime.files.plain_files import refuse_other

from workflow.storage.files import atomic_text

DIGEST, ROWS = "sha256", "rows"
_AGAIN = "delete it and run again"


class CheckedJsonError(ValueError):
    """A file is cut short, damaged, or not what was written."""


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line, and a line with their number and digest, atomically."""
    lines = [json.dumps(row, allow_nan=True) + "\n" for row in rows]
    text = "".join(lines)
    atomic_text(path, text + json.dumps({ROWS: len(lines), DIGEST: _digest(text)}) + "\n")


def read_lines(path: Path) -> list[str]:
    """Return the lines that `write_lines` wrote, without the last.

    Raises CheckedJsonError that names the file where they are not those that were written.
    """
    text = _text(path)
    *lines, last = text.splitlines(keepends=True) or [""]
    try:
        found = json.loads(last)
        rows, digest = found[ROWS], found[DIGEST]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckedJsonError(
            f"{path}: its last line must have the number of rows and their SHA-256, so it is cut "
            f"short, damaged or of an earlier version; {_AGAIN}"
        ) from error
    if rows != len(lines):
        raise CheckedJsonError(f"{path}: has {len(lines)} rows, {rows!r} were written; {_AGAIN}")
    if digest != _digest("".join(lines)):
        raise CheckedJsonError(f"{path}: damaged (its rows fail their SHA-256); {_AGAIN}")
    return lines


def write_object(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object with its digest, atomically; no key of it is `DIGEST`."""
    digest = _digest(_canonical(content))
    atomic_text(path, json.dumps({**content, DIGEST: digest}, indent=1, allow_nan=True) + "\n")


def read_object(path: Path) -> dict[str, Any]:
    """Return the object that `write_object` wrote; raises CheckedJsonError as `read_lines` does."""
    try:
        content = json.loads(_text(path))
        digest = content.pop(DIGEST)
    except CheckedJsonError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckedJsonError(
            f"{path}: must be a JSON object with its SHA-256, so it is cut short, damaged or of an "
            f"earlier version; {_AGAIN}"
        ) from error
    if digest != _digest(_canonical(content)):
        raise CheckedJsonError(f"{path}: damaged (it fails its SHA-256); {_AGAIN}")
    return dict(content)


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _text(path: Path) -> str:
    refuse_other(path)  # a pipe would be waited for
    try:
        # As it stands: reading as text would take a carriage return for the end of a line.
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise CheckedJsonError(f"{path}: damaged ({error}); {_AGAIN}") from error
