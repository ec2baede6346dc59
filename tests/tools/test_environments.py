"""Conda and container definitions are those of the locks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tools.environments import definitions


@pytest.mark.parametrize(
    "name", ["environment.yaml", "Dockerfile", "argand.def", "argand.cdx.json"]
)
def test_definitions_are_in_step_with_the_locks(root: Path, name: str) -> None:
    path = root / "envs" / name
    expected = definitions(root)[path]
    assert path.read_text() == expected, "run: python -m tools.environments"


def test_another_lock_is_another_definition(root: Path, tmp_path: Path) -> None:
    (tmp_path / "envs").mkdir()
    lock = (root / "envs" / "cpu.txt").read_text()
    (tmp_path / "envs" / "cpu.txt").write_text(lock.replace("numpy==", "numpy==1"))
    other = list(definitions(tmp_path).values())
    assert all(a != b for a, b in zip(definitions(root).values(), other, strict=True))


def test_conda_has_every_package_and_hash_of_the_lock(root: Path) -> None:
    lock = (root / "envs" / "cpu.txt").read_text()
    held = yaml.safe_load((root / "envs" / "environment.yaml").read_text())
    (packages,) = [part["pip"] for part in held["dependencies"] if isinstance(part, dict)]
    names = re.findall(r"^([a-z0-9][A-Za-z0-9._-]*)(?:\[.*?\])?==", lock, re.MULTILINE)
    assert [re.split(r"[\[=]", line)[0] for line in packages] == names
    hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}", lock)
    assert re.findall(r"--hash=sha256:[0-9a-f]{64}", " ".join(packages)) == hashes
    assert all("--hash=" in line for line in packages)


def test_files_that_containers_copy_are_there(root: Path) -> None:
    for name in ("Snakefile", "profiles/default/config.yaml", "envs/gpu-cuda12.txt",
                 "envs/gpu-cuda13.txt"):  # fmt: skip
        assert (root / name).is_file()
