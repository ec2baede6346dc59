"""``argand run|check|report|compare``: hands its words to the workflow of this package.

In a wheel it lies inside the package, in a folder that no import of another package finds; in a
clone it is the repository. It runs in a process of its own: this package imports none of it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from argand.command.children import finished

COMMANDS = ("run", "check", "report", "compare")
_OF_THE_EXTRA = re.compile(r"([\w.-]+).*; *extra *== *['\"]workflow['\"]")

_PACKAGE = Path(__file__).resolve().parents[1]


def study_tree() -> Path | None:
    """Return the folder that holds the Snakefile; None where this package came without one."""
    for folder in (_PACKAGE / "study", _PACKAGE.parents[1]):
        if (folder / "Snakefile").is_file() and (folder / "workflow").is_dir():
            return folder
    return None


def missing_packages() -> list[str]:
    """Return the packages of the extra ``workflow`` that are not installed."""
    return [name for name in needed_packages() if not _is_installed(name)]


def needed_packages() -> list[str]:
    """Return the packages that the extra ``workflow`` names, as `pyproject.toml` lists them."""
    if not _is_installed("argand"):
        return []  # found by PYTHONPATH alone: what is missing, an import will say
    found = map(_OF_THE_EXTRA.match, metadata.requires("argand") or ())
    return [match[1] for match in found if match]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def main(words: Sequence[str]) -> int:
    """Run one command of the workflow; the exit status is its own, 2 where it cannot be run."""
    tree, missing = study_tree(), missing_packages()
    if tree is None:
        print(f"argand {words[0]}: {_PACKAGE} came without the workflow", file=sys.stderr)
        return 2
    if missing:
        print(
            f"argand {words[0]} needs {', '.join(missing)}, not installed for {sys.executable}: "
            'pip install "argand[workflow]"',
            file=sys.stderr,
        )
        return 2
    before = os.environ.get("PYTHONPATH")
    folders = [str(tree), str(_PACKAGE.parent), *([before] if before else [])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-m", "workflow.command", *words]
    return finished(command, environment)
