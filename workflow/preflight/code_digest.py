"""Digests of the code of each step, so that Snakemake does again what an edit concerns.

A step's code is its script, the modules of ``workflow`` and of ``benchmarks.peers`` that the script
imports, directly or not, and those of the workload's kind. A step that calls only some methods of a
kind leaves out what the others need (`NOT_CALLED`). Peers are found and not imported, so the run
step names their modules. For ``argand`` it has `argand.runtime.compile.kernel_digest`, and later
steps are done again with it.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds the packages ``workflow`` and ``benchmarks``."""

FOLLOWED = ("workflow", "benchmarks.peers")
"""The packages whose imports are followed."""

NOT_CALLED: dict[str, tuple[str, ...]] = {
    "stage": ("benchmarks.peers", "workflow.accuracy", "workflow.figures"),
    "run": ("workflow.accuracy", "workflow.figures"),
    "verify": ("benchmarks.peers", "workflow.figures"),
    "combine": ("benchmarks.peers", "workflow.figures"),
    "deliver": ("benchmarks.peers", "workflow.accuracy", "workflow.figures"),
    "gather": ("benchmarks.peers", "workflow.accuracy", "workflow.figures"),
    "draw": ("workflow.accuracy",),
}
"""Packages that modules of a step import without the step calling anything in them.

A test runs the steps of each kind and holds every call to this.
"""

AROUND: tuple[str, ...] = (
    "workflow.config.mistakes",
    "workflow.jobs",
    "workflow.storage.failures",
    "workflow.storage.run_folder",
    "workflow.storage.shared_lock",
    "workflow.versions",
)
"""Modules that decide when and where a job runs and what is said of it, never what it computes."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))",
    re.MULTILINE,
)


@cache
def code_digest(step: str, *modules: str) -> str:
    """Return sixteen hexadecimal digits that change when a step's code does.

    Args:
        step: the name of its script in ``workflow/scripts``.
        modules: further ones that it calls, as that of a workload's kind and those of peers.
    """
    digest = hashlib.sha256()
    for path in code_of(step, *modules):
        text = _text(path).encode()
        digest.update(f"{path.relative_to(ROOT).as_posix()}:{len(text)}:".encode() + text)
    return digest.hexdigest()[:16]


def code_of(step: str, *modules: str) -> list[Path]:
    """Return the files of a step's code, sorted."""
    left_out = (*NOT_CALLED.get(step, ()), *AROUND)
    found = {ROOT / "workflow" / "scripts" / f"{step}.py"}
    waiting = [path for name in modules if (path := _file(name)) is not None] + list(found)
    while waiting:
        path = waiting.pop()
        found.add(path)
        for name in _imported(path):
            beside = _file(name)
            if beside is None or beside in found or _within(name, left_out):
                continue
            found.add(beside)
            waiting.append(beside)
    return sorted(found)


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@cache
def _imported(path: Path) -> frozenset[str]:
    """Return the modules of `FOLLOWED` that a file imports, wherever it does.

    The words of import statements are searched for: to parse all files would take ten times as
    long, in every job. A text that reads like an import counts as one, which does no harm.
    """
    names: set[str] = set()
    for module, imported, plain in _IMPORT.findall(_text(path)):
        if plain:
            names.update(word.split()[0] for word in plain.split(",") if word.split())
            continue
        words = re.sub(r"#[^\n]*", "", imported).strip("() \t\n").split(",")
        names.add(module)
        names.update(f"{module}.{word.split()[0]}" for word in words if word.split())
    return frozenset(name for name in names if _within(name, FOLLOWED))


@cache
def _file(name: str) -> Path | None:
    """Return the file of a module or of a package; None for what is neither."""
    path = ROOT.joinpath(*name.split("."))
    for file in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
