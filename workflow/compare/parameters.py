"""The parameters that decide what workloads compute, of a results folder's own study."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workflow.config.case import Case
from workflow.config.mistakes import StudyError
from workflow.preflight.loading import load_study
from workflow.storage.failures import printable
from workflow.storage.files import is_file
from workflow.study import Study

STUDY = "study.yaml"
_OTHERS = frozenset(
    {
        "kind", "precision", "precisions", "tolerance", "baselines", "rounding", "kernels",
        "allow_unproven", "shards", "device_memory", "uvh5",
    }
)  # fmt: skip
"""Keys that choose how something is computed, and what becomes of it: a comparison is of these.

The kind stands among the sizes of a row.
"""
_LONGEST = 60
"""Characters of a value."""


def parameters_of(folder: Path) -> dict[str, dict[str, str]]:
    """Return by workload its parameters, and those of the products that it is made of.

    Defaults stand for keys that a study leaves out. A file's path is none of them, since its
    SHA-256 is compared. There are none where the folder has no study, or one of another version.
    """
    path = folder / STUDY
    if not is_file(path):
        return {}
    try:
        study = load_study(path)
    except (StudyError, OSError):
        return {}
    return {name: dict(_of(study, name, "")) for name in study.names}


def _of(study: Study, name: str, before: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a workload, and of those whose products it reads after their names.

    ``before`` stands before each of them.
    """
    for key, value in _flat(study.workloads[name]):
        yield f"{before}{key}", printable(json.dumps(value, sort_keys=True))[:_LONGEST]
    for other in study.upstream(name):
        yield from _of(study, other, f"{other}.")


def _flat(case: Case) -> Iterator[tuple[str, Any]]:
    for key, value in case.model_dump(mode="json", exclude=set(_OTHERS)).items():
        if not isinstance(value, Mapping):
            yield key, value
            continue
        for inner, one in value.items():
            if inner != "file":
                yield f"{key}.{inner}", one
