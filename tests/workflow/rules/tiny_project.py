"""A folder in which tests run a small study as a user does."""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path

from shared_runs import TABLES
from snakemake_forks import run_snakemake

from tests.covers import EXHAUSTIVE

TARGETS = () if EXHAUSTIVE else (TABLES,)
"""Targets of runs that are disturbed: everything, or all that their tables need."""


class Project:
    """A folder to run a study in, from the repository's Snakefile."""

    def __init__(self, root: Path, folder: Path, study: str) -> None:
        self.root, self.folder = root, folder
        self.study = folder / "study.yaml"
        self.study.write_text(study)

    def flags(self, *flags: str) -> list[str]:
        return [
            "--snakefile", str(self.root / "Snakefile"), "--cores", "2",
            "--config", f"study={self.study}", "out=results", "--directory", str(self.folder),
            *flags,
        ]  # fmt: skip

    def run(self, *flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
        given = {**os.environ, **environ}
        return run_snakemake(self.flags(*flags), self.folder, given, self.root)

    def complete(self) -> None:
        """Run it to its tables, with nothing by hand."""
        done = self.run(*TARGETS)
        assert done.returncode == 0, done.stderr

    def rows(self) -> list[dict[str, str]]:
        with (self.folder / "results" / "tables" / "performance.csv").open() as file:
            return list(csv.DictReader(file))
