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
        "import sys; from workflow.jobs.joblog import job_log\n"
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


def test_no_line_is_lost_without_a_word(tmp_path: Path) -> None:
    """Names of files may have bytes that are no text; a line that cannot be made is said."""
    code = (
        "import sys; from workflow.jobs.joblog import job_log\n"
        "with job_log(sys.argv[1]) as log:\n"
        "    log.info('%d', 'no number')\n"
        "    raise ValueError('no file x\\udcff.h5')"
    )
    log = tmp_path / "x.log"
    done = subprocess.run(
        [sys.executable, "-c", code, str(log)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert log.read_text().splitlines()[-1] == r"ValueError: no file x\udcff.h5"
    assert "TypeError: %d format" in done.stderr


@pytest.mark.parametrize("failing", [False, True])
def test_a_log_for_which_there_is_no_room(tmp_path: Path, failing: bool) -> None:
    """A job without its log has failed, and says on standard error what the log would have said."""
    pytest.importorskip("resource", reason="limits of a process")
    last = "raise ValueError('of its own')" if failing else "log.info('hello')"
    code = (
        "import resource, sys; from workflow.jobs.joblog import job_log\n"
        "with job_log(sys.argv[1]) as log:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        f"    {last}"
    )
    log = tmp_path / "x.log"
    done = subprocess.run(
        [sys.executable, "-c", code, str(log)], capture_output=True, text=True, check=False
    )
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert lines[0].startswith(f"{log}: the job's log was not written: [Errno ")
    assert lines[1:] == (["ValueError: of its own"] if failing else [])
