"""Files of tests that need a GPU are left out where none answers, but can still be collected."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu_files import HAS_GPU, gpu_files, needs_a_gpu

pytestmark = pytest.mark.skipif(HAS_GPU, reason="they are collected with all others")


def collected(root: Path, *given: str) -> str:
    """The output of a collection without errors."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "--assert=plain",
         "-p", "no:cacheprovider", *given],
        cwd=root, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "ARGAND_TESTS": "all"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_is_collected_by_its_name(root: Path) -> None:
    """Mistakes in their imports and parameters show on a machine without a GPU too."""
    files = gpu_files(root / "tests")
    assert len(files) > 20
    said = collected(root, *map(str, files))
    for path in files:
        assert f"{path.relative_to(root)}::" in said
    assert said.count("::") > 1000


def test_a_folder_of_such_a_name_is_none(tmp_path: Path) -> None:
    """Pytest names the folder of a test after it."""
    (tmp_path / "test_gpu_jobs0").mkdir()
    assert not needs_a_gpu(tmp_path / "test_gpu_jobs0")
