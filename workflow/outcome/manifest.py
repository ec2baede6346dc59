"""The manifest of results: what was run, from which code and data, where, and what came of it."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from argand.device import available_cores, devices

from workflow.files.input_error import InputError
from workflow.records import Record
from workflow.storage.checked_json import write_object
from workflow.storage.files import atomic_text, sha256_of
from workflow.storage.memory import machine_memory
from workflow.versions import timestamp, versions

ROOT = Path(__file__).resolve().parents[2]


def write_manifest(
    path: Path,
    study_path: Path,
    study: Mapping[str, Any],
    records: Iterable[Record],
    inputs: Mapping[str, Sequence[Path]],
    files: Iterable[Path],
    parameters: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """Write the manifest and, beside it, the study as it was read; returns the manifest.

    Args:
        path: the manifest: JSON with its own SHA-256 under ``sha256``.
        study_path: the study, as YAML that runs again.
        study: keys and values of the config, those of the command line in their place.
        records: records of all workloads, for devices, versions and times of what was computed.
        inputs: the user's files that each workload reads, as `Study.input_files` has them.
        files: the results, each to be listed with its SHA-256.
        parameters: `Study.parameters` of each workload, which a comparison holds two runs to.

    Raises OSError where a file cannot be read or written, InputError for an input that is gone or
    is not what results were computed from.
    """
    rows = list(records)
    text = yaml.safe_dump(dict(study), sort_keys=False, allow_unicode=True, width=100)
    atomic_text(study_path, text)
    content: dict[str, Any] = {
        "study": str(study_path),
        "seed": next((row.seed for row in rows), None),
        "written": timestamp(),
        "computed": [choose((row.timestamp for row in rows), default="") for choose in (min, max)],
        "code": _code(),
        "versions": versions(),
        "machine": {
            "system": platform.platform(),
            "cores": available_cores(),
            "memory_bytes": machine_memory(),
            "devices": [device.name for device in devices()],
        },
        "computed_with": {
            "devices": sorted({row.device for row in rows}),
            "versions": sorted({row.versions for row in rows}),
            "kernel_digests": sorted({row.kernel_digest for row in rows} - {""}),
        },
        "inputs": _checksums(inputs, rows),
        "parameters": {name: dict(one) for name, one in (parameters or {}).items()},
        "files": {str(file): sha256_of(file) for file in sorted({*files, study_path})},
    }
    write_object(path, content)
    return content


def _checksums(inputs: Mapping[str, Sequence[Path]], rows: Iterable[Record]) -> dict[str, str]:
    """Return the SHA-256 of inputs, which must be what the rows say that they were staged from."""
    found = {}
    for file in sorted({file for files in inputs.values() for file in files}):
        try:
            found[str(file)] = sha256_of(file)
        except OSError as error:
            raise InputError(
                f"{file} cannot be read any more ({error.strerror}); put back what was "
                "staged, or run again with what it is to be"
            ) from error
    for row in rows:
        names = [str(file) for file in inputs.get(row.workload, ())]
        staged = [text for text in row.source_sha256.split("; ") if text]
        if not staged or staged == [found[name] for name in names]:
            continue
        others = [n for n, then in zip(names, staged, strict=False) if found[n] != then] or names
        raise InputError(
            f"{row.workload}: {', '.join(others) or 'an input'} has changed since it was staged "
            f"(SHA-256 {', '.join(staged)} then); run again, so that results are of what it is now"
        )
    return found


def _code() -> dict[str, Any]:
    """Return this repository's commit, and whether files differ from it; None where git has none.

    A copy of ours within somebody's repository is not at that one's commit.
    """
    top = _git("rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != ROOT:
        return {"commit": None, "changed": None}
    return {"commit": _git("rev-parse", "HEAD"), "changed": bool(_git("status", "--porcelain"))}


def _git(*words: str) -> str | None:
    """Return the state of the repository by git; None without one."""
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "-C", str(ROOT), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
