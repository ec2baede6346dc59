"""Files that are whole or absent, folders that one run holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workflow.storage.files import FolderHeldError, atomic_path, atomic_text, hold_folder


def _fail_half_way(path: Path) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text("half")
        raise ValueError("planted")


def test_replaced_only_on_success(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x.txt"
    atomic_text(path, "old")
    with pytest.raises(ValueError, match="planted"):
        _fail_half_way(path)
    assert path.read_text() == "old"
    assert [file.name for file in path.parent.iterdir()] == ["x.txt"]


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    atomic_text(tmp_path / "a", "x")
    (tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_one_run_a_folder_and_a_kill_releases_it(tmp_path: Path, root: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from workflow.storage.files import hold_folder\n"
        "lock = hold_folder(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=root
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(FolderHeldError, match=rf"process {other.pid}"):
            hold_folder(tmp_path)
        other.kill()
        other.wait()
        hold_folder(tmp_path).close()
