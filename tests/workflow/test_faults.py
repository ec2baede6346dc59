"""Faults while a job writes: a full disk, a scheduler's SIGTERM, a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from argand.runtime.files.whole_files import LEFTOVERS

from tests.workflow.whole_files import read_staged
from workflow.data import Staged
from workflow.storage.run_folder import remove_leftovers
from workflow.storage.staged import write_staged

STAGED = Staged({"x": np.arange(1 << 19, dtype=np.float64)}, {"x": ("n",)})  # 4 MiB


def write(path: Path) -> None:
    write_staged(path, STAGED, workload="w", kind="gemm")


@pytest.fixture
def fills_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room when the file is begun, and others take it meanwhile."""
    monkeypatch.setattr("workflow.storage.staged.check_room", lambda path, size: None)


@pytest.mark.usefixtures("fills_up")
def test_a_full_disk_leaves_no_file(small_disk: Path) -> None:
    with pytest.raises(OSError, match="No space left on device"):
        write(small_disk / "w.h5")
    assert list(small_disk.iterdir()) == []
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    write(small_disk / "w.h5")
    np.testing.assert_array_equal(
        read_staged(small_disk / "w.h5").operands["x"], np.arange(1 << 19)
    )


@pytest.mark.usefixtures("fills_up")
def test_a_full_disk_keeps_the_old_file(small_disk: Path) -> None:
    old = small_disk / "w.h5"
    old.write_text("old")
    with pytest.raises(OSError, match="No space left on device"):
        write(old)
    assert old.read_text() == "old"


def test_a_limit_on_the_size_of_files_leaves_no_file(tmp_path: Path) -> None:
    code = (
        "import resource, runpy, sys; from pathlib import Path\n"
        "write = runpy.run_path(sys.argv[1])['write']\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "write(Path(sys.argv[2]) / 'w.h5')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, __file__, str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


JOB = """
import sys, time
from pathlib import Path
from argand.runtime.files.whole_files import atomic_path
from workflow.jobs.joblog import job_log
with job_log(sys.argv[1] + ".log"), atomic_path(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_job_that_is_ended_leaves_no_partial_file(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "w.h5"
    with subprocess.Popen(
        [sys.executable, "-c", JOB, str(path)], stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "writing\n"
        job.send_signal(number)
    log = tmp_path / "w.h5.log"
    if number == signal.SIGKILL:
        # Nobody could tidy up: the next run does, and the name was never taken.
        assert len(list(tmp_path.glob(LEFTOVERS))) == 1
        assert not path.exists()
        remove_leftovers(tmp_path)
    else:
        assert job.returncode == 1
        assert log.read_text().endswith("TerminatedError: the job was asked to end (SIGTERM)\n")
    assert list(tmp_path.iterdir()) == [log]


def test_a_link_under_the_name_of_a_result_is_replaced_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / "results").mkdir()
    link = tmp_path / "results" / "w.h5"
    link.symlink_to(outside)
    write(link)
    assert outside.read_text() == "mine"
    assert not link.is_symlink()
