"""Files of plans: JSON of their options and of what was chosen, for other processes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argand.runtime.files.own_files import read_own, write_own

_VERSION = 1
_DIGEST = "sha256"
_MAX_BYTES = 1 << 20
"""Largest file of a plan: a real one has some kilobytes."""


def write_plan(path: Path, operation: str, content: Mapping[str, Any]) -> None:
    """Write the plan of an operation.

    Raises OSError where it cannot be written, NotOwnError for a folder that others may write to.
    """
    found = with_digest({"argand plan": _VERSION, "operation": operation, **content})
    write_own(path.absolute(), json.dumps(found, indent=1).encode())


def with_digest(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a plan with the SHA-256 of all else in it, as JSON with sorted keys."""
    rest = {name: value for name, value in content.items() if name != _DIGEST}
    text = json.dumps(rest, sort_keys=True)
    return rest | {_DIGEST: hashlib.sha256(text.encode()).hexdigest()}


def read_plan(path: Path, operation: str, most_bytes: int = _MAX_BYTES) -> dict[str, Any]:
    """Return the content of a file of `write_plan`.

    Raises NotOwnError and NotPlainError for a file that others may have written, and ValueError for
    one that is not a plan of the operation, is larger than plans are, or changed since.
    """
    text = read_own(path.absolute())
    if len(text) > most_bytes:
        raise ValueError(f"{path} has {len(text)} bytes, a plan has at most {most_bytes}")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a plan: {error}") from error
    if not isinstance(content, dict) or content.get("argand plan") != _VERSION:
        raise ValueError(f"{path} is not a plan of version {_VERSION}")
    if content.get("operation") != operation:
        raise ValueError(f"{path} is a plan of {content.get('operation')!r}, not of {operation!r}")
    if _DIGEST not in content:
        raise ValueError(f"{path} has no {_DIGEST}, as of an earlier version; save the plan again")
    if with_digest(content) != content:
        raise ValueError(f"{path} is damaged: its content does not match its {_DIGEST}")
    return content
