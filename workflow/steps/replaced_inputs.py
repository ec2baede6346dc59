"""Inputs whose content is not what was staged, though their size and time of change are.

Snakemake stages again what has another size or time of modification; programs may set the time, as
``cp -p``, ``rsync -t`` and ``touch -r`` do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workflow.storage.failures import DataError
from workflow.storage.files import sha256_of
from workflow.storage.staged import read_staged_shape
from workflow.study import Study


def replaced_inputs(study: Study) -> dict[Path, list[Path]]:
    """Return the user's files that were replaced, by the staged file that holds what they were.

    Only a file whose status has changed since (``st_ctime``, which no program sets) is read, for
    its SHA-256. A staged file that is missing or damaged is left to Snakemake and its readers.
    """
    found = {}
    for name in study.names:
        staged = study.folder / "staged" / f"{name}.h5"
        with contextlib.suppress(OSError, DataError):
            written = staged.stat().st_mtime_ns
            touched = [one for one in study.input_files(name) if one.stat().st_ctime_ns > written]
            known = _checksums(read_staged_shape(staged).attributes) if touched else set()
            others = [one for one in touched if known and sha256_of(one) not in known]
            if others:
                found[staged] = others
    return found


def _checksums(attributes: Mapping[str, Any]) -> set[str]:
    """Return the SHA-256 of all files that operands were read from."""
    one = {attributes.get(name) for name in ("source_sha256", "circuit_sha256")}
    return {*filter(None, one), *attributes.get("files_sha256", {}).values()}
