"""Commands that the Makefile would run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def commands(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", *words],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.replace("\\\n", " ")


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "--cores all"),
        (("STUDY=", "OUT=", "CORES=8"), "--cores 8"),
        (("STUDY=examples/hera.yaml",), "--cores all 'examples/hera.yaml'"),
        (
            ("STUDY=a/night.yaml", "OUT=/disk/night"),
            "--out='/disk/night' --cores all 'a/night.yaml'",
        ),
        (("STUDY=my disk/a b.yaml",), "--cores all 'my disk/a b.yaml'"),
        (("STUDY=Ann's, Bo's/ü.yaml",), r"--cores all 'Ann'\''s, Bo'\''s/ü.yaml'"),
        (("PROFILE=profiles/slurm",), "--profile='profiles/slurm'"),
    ],
)
@pytest.mark.parametrize("target", ["run", "check", "report"])
def test_what_is_given_is_handed_on(
    root: Path, target: str, given: tuple[str, ...], words: str
) -> None:
    line = commands(root, target, *given).splitlines()[-1]
    assert line.split() == f".venv/bin/python -m argand {target} {words}".split()
