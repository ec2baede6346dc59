"""envs/setup.sh, as far as it goes without installing anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def tree(root: Path, tmp_path: Path) -> Path:
    """A copy of what the script reads."""
    tree = tmp_path / "tree"
    shutil.copytree(root / "envs", tree / "envs")
    shutil.copy(root / "pyproject.toml", tree)
    return tree


def installed(tree: Path, venv: Path) -> None:
    """A folder of packages in which everything is said to be there."""
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    for lock in ("pip", "cpu"):
        shutil.copy(tree / "envs" / f"{lock}.txt", venv / f".installed-{lock}")
    shutil.copy(tree / "pyproject.toml", venv / ".installed-argand")


def set_up(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run the script, which is not to look for a GPU."""
    (tree / "bin").mkdir()
    (tree / "bin" / "nvidia-smi").write_text("#!/bin/sh\nexit 1\n")
    (tree / "bin" / "nvidia-smi").chmod(0o755)
    path = os.pathsep.join((str(tree / "bin"), os.environ["PATH"]))
    environ = {key: value for key, value in os.environ.items() if key != "ARGAND_CUDA"}
    return subprocess.run(
        ["bash", tree / "envs" / "setup.sh", "run"], cwd=tree, text=True, capture_output=True,
        env=environ | {"PATH": path, "PYTHON": sys.executable}, check=False,
    )  # fmt: skip


def test_packages_of_another_tree_are_not_touched(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(tree, other)
    (other / ".venv").mkdir()
    (tree / ".venv").symlink_to(other / ".venv")
    done = set_up(tree)
    assert done.returncode == 1
    assert done.stderr == (
        f".venv is a link to that of {other}, which would be changed: remove the link.\n"
    )
    assert not list((other / ".venv").iterdir())


@pytest.mark.parametrize("linked", [False, True])
def test_packages_may_lie_on_another_disk(tree: Path, tmp_path: Path, linked: bool) -> None:
    if linked:
        (tree / ".venv").symlink_to(tmp_path / "disk" / "venv")
    installed(tree, tmp_path / "disk" / "venv" if linked else tree / ".venv")
    done = set_up(tree)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


FAKE = """#!/bin/sh
case "$*" in *--require-hashes*)
  for given; do :; done
  grep -E '^[^ #]' "$given" >> installed.txt
  case "$given" in */PART) exit 1;; esac
esac
"""
"""A Python whose pip notes what of a lock it is to install, and fails at one part."""


@pytest.mark.parametrize("failing", ["none", "0"])
def test_each_package_of_a_lock_is_installed_once_or_the_lock_is_not(
    tree: Path, failing: str
) -> None:
    installed(tree, tree / ".venv")
    (tree / ".venv" / ".installed-cpu").unlink()
    (tree / ".venv" / "bin" / "python").unlink()
    (tree / ".venv" / "bin" / "python").write_text(FAKE.replace("PART", failing))
    (tree / ".venv" / "bin" / "python").chmod(0o755)
    done = set_up(tree)
    assert (done.returncode == 0) == (tree / ".venv" / ".installed-cpu").exists()
    assert (done.returncode == 0) == (failing == "none"), done.stderr
    noted = (tree / "installed.txt").read_text().splitlines()
    lock = (tree / "envs" / "cpu.txt").read_text()
    assert sorted(noted) == sorted(re.findall(r"^[^ #\n].*", lock, re.MULTILINE))
