"""Names of a study that are names of files: of its results, and of what it reads.

Snakemake would find most of these mistakes too, later and in words of its own; some it would not
find but read as something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from workflow.storage.run_folder import RESULTS
from workflow.study import Study

_OF_WORKLOAD = (
    "staged/{}.h5", "records/{}.jsonl", "products/{}.h5", "figures/pareto/{}.svg",
    "figures/products/{}.svg", "logs/stage/{}.log", "logs/draw/{}.log",
)  # fmt: skip
_OF_SHARDED = ("logs/combine/{}.log", "logs/gather/{}.log")
_OF_PART = (
    "runs/{}.h5", "records/{}.jsonl", "products/{}.h5", "logs/run/{}.log", "logs/verify/{}.log",
    "logs/deliver/{}.log",
)  # fmt: skip
_OF_STUDY = ("records/growth.json",)
"""Files of the study itself in folders that have files named after workloads."""
_MISREAD = re.compile(r"[{}<>]")
"""Snakemake puts something else in the place of ``{name}`` and ``<name>`` in any path."""


_REPEATED = re.compile(r"(.+?)\1{19}$")
"""Snakemake takes such an ending for a rule that leads to itself (its PeriodicityDetector)."""


def repetitive_names(study: Study) -> list[str]:
    """Workloads whose names Snakemake refuses for their ending, a line for each."""
    return [
        f"workloads.{name}: a name must not end with the same letters twenty times in a row, got "
        f"{found[1]!r} again and again"
        for name in study.names
        if (found := _REPEATED.search(name))
    ]


def clashing_names(study: Study) -> list[str]:
    """Workloads of which one's results would be in the way of another's, a line for each.

    A sharded workload's results lie in folders of its name. Upper and lower case count as one, so
    that a study gives the same files on every file system.
    """
    files: dict[str, tuple[str, str]] = {path: (path, "") for path in _OF_STUDY}
    folders: dict[str, tuple[str, str]] = {}
    mistakes: dict[tuple[str, str], str] = {}

    def clash(path: str, name: str, other_path: str, other: str) -> None:
        owner = f"of workload {other!r}" if other else "of the study"
        mistakes.setdefault(
            (name, other),
            f"workloads.{name}: its {RESULTS}/{path} would be in the way of {RESULTS}/{other_path} "
            f"{owner}; give one of them another name (upper and lower case count as one)",
        )

    for name in study.names:
        for path in _results(study, name):
            key = path.casefold()
            taken = files.setdefault(key, (path, name))
            if taken[1] != name:
                clash(path, name, *taken)
            elif key in folders:
                clash(path, name, *folders[key])
            for above in map(str, PurePosixPath(path).parents[:-2]):
                folders.setdefault(above.casefold(), (path, name))
                if above.casefold() in files:
                    clash(path, name, *files[above.casefold()])
    return list(mistakes.values())


def _results(study: Study, name: str) -> Iterator[str]:
    """The files of a workload, and of one of its shards."""
    shards = bool(study.shards(name))
    for pattern in (*_OF_WORKLOAD, *(_OF_SHARDED if shards else ())):
        yield pattern.format(name)
    for pattern in _OF_PART:
        yield pattern.format(study.parts(name)[0])


def unusable_inputs(study: Study, name: str) -> list[str]:
    """What is wrong with the names of the files that a workload reads, a line for each.

    Raises InputError as `Study.input_files` does.
    """
    mistakes = []
    results = RESULTS.resolve()
    for path in study.input_files(name):
        if found := _MISREAD.search(str(path)):
            mistakes.append(
                f"workloads.{name}: Snakemake reads braces and angle brackets in the path of an "
                f"input as a pattern, got {found[0]!r} in {str(path)!r}; rename the file or folder"
            )
        if Path(path).resolve().is_relative_to(results):
            mistakes.append(
                f"workloads.{name}: an input must not lie in {RESULTS}/, where runs of this folder "
                f"write, got {str(path)!r}; copy it elsewhere, or read another workload's product "
                "by input.workload"
            )
    return mistakes
