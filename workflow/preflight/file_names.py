"""Names of a study that are names of files: of its results, and of what it reads.

Snakemake would find most of these mistakes too, later and in words of its own; some it would not
find but read as something else.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from workflow.config.mistakes import StudyError
from workflow.storage.files import CLOCK_SKEW_S
from workflow.storage.run_folder import RESULTS
from workflow.study import Study

OF_WORKLOAD = (
    "staged/{}.h5", "records/{}.jsonl", "products/{}.h5", "figures/pareto/{}.svg",
    "figures/products/{}.svg", "logs/stage/{}.log", "logs/draw/{}.log",
    "benchmarks/stage/{}.tsv",
)  # fmt: skip
"""Files named after a workload."""
OF_SHARDED = ("logs/combine/{}.log", "logs/gather/{}.log")
"""Further files named after a workload that is computed in shards."""
OF_EXPORTED = ("products/{}.uvh5", "logs/write_uvh5/{}.log")
"""Further files named after a workload whose product is written as UVH5 too."""
OF_PART = (
    "runs/{}.h5", "times/{}.json", "records/{}.jsonl", "products/{}.h5", "logs/run/{}.log",
    "logs/verify/{}.log", "logs/deliver/{}.log", "benchmarks/run/{}.tsv",
    "benchmarks/verify/{}.tsv", "benchmarks/deliver/{}.tsv",
)  # fmt: skip
"""Files named after a part, which is a workload or one shard of it."""
_OF_STUDY = ("records/growth.json",)
"""Files of the study itself in folders that have files named after workloads."""
_MISREAD = re.compile(r"[{}<>]")
"""Snakemake puts something else in the place of ``{name}`` and ``<name>`` in any path."""


_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")
_MARKS = "'\""
"""Quotation marks, which Snakemake takes from both ends of a value of --config."""


def typed_paths(words: Iterable[str]) -> dict[str, str]:
    """Return the paths ``study`` and ``out`` among the words of --config, as they were typed.

    Snakemake itself reads 2026_11_30 as the number 20261130, 1.10 as 1.1, and ends text at `` #``.
    """
    pairs = (word.partition("=") for word in words)
    return {key: value.strip(_MARKS) for key, _, value in pairs if key in ("study", "out")}


def folder_of(study: Path) -> Path:
    """Return where the results of a study go that is in this file: a folder of its file's name.

    Characters that names of files need not have, such as spaces and braces, become a hyphen. Raises
    StudyError for a path that Snakemake would not be given whole.
    """
    _refuse_marks("study", str(study))
    return RESULTS / (_UNUSUAL.sub("-", study.stem).strip(".-") or "study")


def named_folder(text: str) -> Path:
    """Return the folder that a user names for results.

    It is a path from here where it lies here: Snakemake takes another path to a folder for a folder
    it knows nothing of. Raises StudyError for one that Snakemake reads as a pattern or would not be
    given whole, and for one that this folder is or lies in: what is in the way there is removed.
    """
    _refuse_marks("out", text)
    if not text:  # such as --out=$NAME of a name that is not set
        raise StudyError(["out: must be a path, got nothing"])
    if not text.isprintable() or text != text.strip():
        wrong = "that can be printed, without spaces at its ends"
        raise StudyError([f"out: must be a path {wrong}, got {text!r}"])
    if text.startswith("~"):
        raise StudyError([f"out: must be a path without ~, which only a shell knows, got {text!r}"])
    if found := _MISREAD.search(text):
        raise StudyError([f"out: must be a path without {found[0]!r}, got {text!r}"])
    if Path.cwd().is_relative_to(Path(text).resolve()):
        raise StudyError([f"out: must be a folder for results alone, got {text!r}"])
    path = Path(text)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _refuse_marks(key: str, path: str) -> None:
    if path.strip(_MARKS) != path:
        raise StudyError([f"{key}: must be a path without quotation marks at its ends, got {path}"])


def check_for_jobs(key: str, path: str) -> None:
    """Raise StudyError for a path that jobs of a cluster would not be given as it is.

    Snakemake quotes it for their shell as Python does: a backslash becomes two, and beside an
    apostrophe it stands between quotation marks, where a shell reads what begins with ``$``.
    """
    if "\\" in path or ("'" in path and set(path) & set('$`"')):
        said = f"{key}: the shell of a cluster's job would read another path than {path!r}; "
        advice = "name it without a backslash, and without an apostrophe beside $, ` or a"
        raise StudyError([f"{said}{advice} quotation mark"])


_REPEATED = re.compile(r"(.+?)\1{19}$")
"""Snakemake takes such an ending for a rule that leads to itself (its PeriodicityDetector)."""


def repetitive_names(study: Study) -> list[str]:
    """Return the workloads whose names Snakemake refuses for their ending, a line for each."""
    return [
        f"workloads.{name}: a name must not end with the same letters twenty times in a row, got "
        f"{found[1]!r} again and again"
        for name in study.names
        if (found := _REPEATED.search(name))
    ]


def clashing_names(study: Study) -> list[str]:
    """Return workloads whose results would be in the way of another's, a line for each.

    A sharded workload's results lie in folders of its name. Upper and lower case count as one, so
    that a study gives the same files on every file system.
    """
    files: dict[str, tuple[str, str]] = {path: (path, "") for path in _OF_STUDY}
    folders: dict[str, tuple[str, str]] = {}
    mistakes: dict[tuple[str, str], str] = {}
    folder = study.folder

    def clash(path: str, name: str, other_path: str, other: str) -> None:
        owner = f"of workload {other!r}" if other else "of the study"
        mistakes.setdefault(
            (name, other),
            f"workloads.{name}: its {folder}/{path} would be in the way of {folder}/{other_path} "
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
    known: dict[str, str] = {}
    for name in study.sweeps:
        other = known.setdefault(name.casefold(), name)
        if other != name:
            path = f"figures/sweeps/{name}.svg"
            clash(path, name, f"figures/sweeps/{other}.svg", other)
    return list(mistakes.values())


def _results(study: Study, name: str) -> Iterator[str]:
    """Yield the files of a workload, and of one of its shards."""
    sharded = OF_SHARDED if study.shards(name) else ()
    exported = OF_EXPORTED if study.workloads[name].is_exported else ()
    for pattern in (*OF_WORKLOAD, *sharded, *exported):
        yield pattern.format(name)
    for pattern in OF_PART:
        yield pattern.format(study.parts(name)[0])


def unusable_inputs(study: Study, name: str) -> list[str]:
    """Return the mistakes in the names of the files that a workload reads, a line for each.

    Raises InputError as `Study.input_files` does.
    """
    mistakes = []
    results = study.folder.resolve()
    for path in study.input_files(name):
        if found := _MISREAD.search(str(path)):
            mistakes.append(
                f"workloads.{name}: Snakemake reads braces and angle brackets in the path of an "
                f"input as a pattern, got {found[0]!r} in {str(path)!r}; rename the file or folder"
            )
        if hours := _hours_to_come(Path(path)):
            mistakes.append(
                f"workloads.{name}: {str(path)!r} was changed {hours:.2g} h from now, so Snakemake "
                "would take no result for newer; touch it, copy it without its time, or set the "
                "clock of this machine right"
            )
        if Path(path).resolve().is_relative_to(results):
            mistakes.append(
                f"workloads.{name}: an input must not lie in {study.folder}/, where runs of this "
                f"study write, got {str(path)!r}; copy it elsewhere, or read another workload's "
                "product by input.workload"
            )
    return mistakes


def _hours_to_come(path: Path) -> float:
    """Return the hours by which a file's time of change is in the future; 0 where it has passed."""
    try:
        ahead = path.stat().st_mtime - time.time()
    except OSError:  # said elsewhere
        return 0
    return ahead / 3600 if ahead > CLOCK_SKEW_S else 0
