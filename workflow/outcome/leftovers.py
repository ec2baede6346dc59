"""Results of workloads and shards that are not in a study any more."""

from __future__ import annotations

from pathlib import Path

from workflow.counted import counted
from workflow.preflight.file_names import OF_PART, OF_WORKLOAD
from workflow.storage.checked_json import CheckedJsonError, read_object
from workflow.storage.failures import printable
from workflow.storage.memory import in_words

_PRODUCTS, _RECORDS = "products", "records"
_OTHERS = {
    tuple(pattern.split("/{}"))
    for pattern in (*OF_WORKLOAD, *OF_PART)
    if not pattern.startswith((_PRODUCTS, "logs", "benchmarks"))
}
"""Folders that have a file of each workload, or of each of its shards, and the file's suffix."""
_MAX_SHOWN = 10


def left_over(folder: Path) -> str:
    """Return a text on files in a folder of results that its manifest does not account for.

    It names products, since they look like those of the study, and gives the number and size of
    other files. It is empty where nothing is left over, and without a manifest.
    """
    try:
        manifest = read_object(folder / "manifest.json")
        root, listed = Path(manifest["study"]).parent, list(map(Path, manifest["files"]))
    except (OSError, CheckedJsonError, KeyError, TypeError):
        return ""
    products = _within(root / _PRODUCTS, listed)
    parts = {name.with_suffix("") for name in products | _within(root / _RECORDS, listed)}
    old = [
        path
        for path in sorted((folder / _PRODUCTS).rglob("*.*h5"))
        if path.relative_to(folder / _PRODUCTS) not in products and not path.is_dir()
    ]
    others = [
        path
        for kind, suffix in _OTHERS
        for path in (folder / kind).rglob(f"*{suffix}")
        if path.relative_to(folder / kind).with_suffix("") not in parts and path.is_file()
    ]
    said = [printable(str(path)) for path in old[:_MAX_SHOWN]]
    said += [f"{len(old) - _MAX_SHOWN} more products"] if len(old) > _MAX_SHOWN else []
    if others:
        size = in_words(sum(path.stat().st_size for path in others))
        kinds = sorted({path.relative_to(folder).parts[0] for path in others})
        said.append(f"{counted(len(others), 'file')} in {', '.join(kinds)} ({size})")
    return ", ".join(said)


def _within(folder: Path, files: list[Path]) -> set[Path]:
    return {path.relative_to(folder) for path in files if path.is_relative_to(folder)}
