"""SciPy's own tests, run on ours in a process of their own: they have markers and settings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def passes(script: str, folder: Path) -> tuple[int, str]:
    """How many tests passed when a script that calls `main` was run, and what it said."""
    command = [sys.executable, script, str(folder / "pytest.ini")]
    paths = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=environ
    )
    assert found.returncode == 0, found.stdout + found.stderr
    passed = re.search(r"(\d+) passed", found.stdout)
    assert passed is not None
    assert "failed" not in found.stdout
    return int(passed[1]), found.stdout


def main(plugin: Any, *arguments: str) -> None:
    """Run pytest by the settings file that the command line names, and exit as it does."""
    settings = Path(sys.argv[1])
    settings.write_text("[pytest]\n")
    own = ["-q", "-c", str(settings), "-p", "no:cacheprovider", "-p", "no:xdist"]
    sys.exit(pytest.main([*own, *arguments], plugins=[plugin]))
