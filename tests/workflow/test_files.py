"""Folders that one run holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workflow.storage.files import FolderHeldError, hold_folder


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
