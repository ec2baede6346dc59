"""The log of a job, where somebody may have put something under its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from planted import PLANTED, planted


@pytest.mark.parametrize("what", PLANTED)
def test_a_log_is_a_new_file_whatever_has_its_name(tmp_path: Path, what: str) -> None:
    log = tmp_path / "x.log"
    precious = planted(log, what)
    replaced = what in ("link", "dangling", "names")
    code = (
        "import sys; from workflow.steps.joblog import job_log\n"
        "with job_log(sys.argv[1]) as log: log.info('hello')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(log)], capture_output=True, text=True, check=False
    )
    assert precious.read_text() == "mine"
    if replaced:
        assert (done.returncode, log.read_text(), log.is_symlink()) == (0, "hello\n", False)
    else:
        assert done.returncode == 1
        assert f"x.log: found {PLANTED[what]}" in done.stderr
        assert "Traceback" not in done.stderr
