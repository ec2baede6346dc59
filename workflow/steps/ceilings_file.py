"""The ceilings of a run's device in a file, with a checksum."""

from __future__ import annotations

import json
from pathlib import Path

from argand.runtime.ceilings import Ceilings

from workflow.storage.checked_json import read_object, write_object


def write_ceilings(path: Path, ceilings: Ceilings) -> None:
    """Write ceilings as `Ceilings.to_json` does, with their SHA-256 beside them, atomically."""
    write_object(path, json.loads(ceilings.to_json()))


def read_ceilings(path: Path) -> Ceilings:
    """Read what `write_ceilings` wrote; raises ValueError that names the file."""
    content = read_object(path)
    try:
        return Ceilings.from_json(json.dumps(content))
    except ValueError as error:
        raise ValueError(f"{path}: {error}; delete it and run again") from error
