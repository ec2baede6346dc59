"""The workflow is read, and planned, with the packages of envs/cpu.txt alone, and without data."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml

HIDDEN = """
import sys
HIDDEN = {hidden!r}
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"{{name}} is not in envs/cpu.txt", name=name)
sys.meta_path.insert(0, Finder())
"""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(root: Path) -> set[str]:
    """The lock's packages; Snakemake imports every plugin that is installed, so also Slurm's."""
    text = "".join((root / "envs" / f"{name}.txt").read_text() for name in ("cpu", "slurm"))
    return {normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*\])?==", text, re.M)}


def hidden(root: Path) -> list[str]:
    """Modules of packages that are installed here and not in the lock."""
    known = locked(root) | {"argand", "pip", "setuptools"}
    return sorted(
        module
        for module, owners in packages_distributions().items()
        if module.isidentifier() and not known & set(map(normal, owners))
    )


def test_a_plan_needs_the_locked_packages_alone(root: Path, tmp_path: Path) -> None:
    """An empty folder and ``pip install --require-hashes -r envs/cpu.txt`` are enough."""
    left_out = hidden(root)
    assert {"pytest", "xarray", "hypothesis"} <= set(left_out)
    (tmp_path / "sitecustomize.py").write_text(HIDDEN.format(hidden=set(left_out)))
    folder = tmp_path / "empty"
    folder.mkdir()
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")]
    done = subprocess.run(
        [*command, "--cores", "1", "--dry-run"], cwd=folder, env=environ, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "would do  answer   results/config/answer.html" in done.stderr
    assert not (folder / "results").exists()


def test_the_catalogue_promises_what_was_seen(root: Path) -> None:
    """No conda channel and no image registry was reached: environments were written, not built."""
    usage = yaml.safe_load((root / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage["software-stack-deployment"] == {"conda": False}
    assert usage["report"] is True
    assert "envs/cpu.txt" in usage["mandatory-flags"]["desc"]
