"""The folder of results: one run holds it, and jobs of earlier runs put nothing there."""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from argand.runtime.files.whole_files import LEFTOVERS
from planted import PLANTED, planted

from workflow.storage import run_folder
from workflow.storage.files import atomic_text
from workflow.storage.places import visible_above
from workflow.storage.run_folder import (
    RESULTS,
    RUN,
    FolderHeldError,
    ReplacedRunError,
    check_folder,
    check_run,
    claim_folder,
    hold_folder,
    remove_leftovers,
    result_path,
    use_folder,
)

HOLDER = """
import gc, os, sys, time
from pathlib import Path
from workflow.storage.run_folder import hold_folder
def hold():
    lock = hold_folder(Path(sys.argv[1]))
hold()
gc.collect()
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
time.sleep(60)
"""


def test_one_run_a_folder_and_a_kill_releases_it(tmp_path: Path, root: Path) -> None:
    """Nothing keeps what `hold_folder` returned, and a forked child outlives the holder."""
    user = pwd.getpwuid(os.getuid()).pw_name
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=root
    ) as other:
        assert other.stdout is not None
        child = int(other.stdout.readline())
        try:
            holder = rf"process {other.pid} of {user} on \S+, since 20\d\d-\S+ \S+\) works here"
            with pytest.raises(FolderHeldError, match=holder):
                hold_folder(tmp_path)
            other.kill()
            other.wait()
            hold_folder(tmp_path).close()
        finally:
            os.kill(child, signal.SIGKILL)


def test_the_lock_says_at_once_who_has_it(tmp_path: Path) -> None:
    with hold_folder(tmp_path):
        assert run_folder._lock_file(tmp_path).read_text().startswith(f"{os.getpid()} of ")


def test_a_check_at_the_same_time_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_folder(tmp_path).close()
    checked = (tmp_path / ".lock").open()
    fcntl.flock(checked, fcntl.LOCK_SH)
    monkeypatch.setattr(run_folder.time, "sleep", lambda _: checked.close())
    with hold_folder(tmp_path):
        assert checked.closed


def test_a_file_system_without_locks_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(file: object, operation: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(FolderHeldError, match=r"cannot be locked \(Function not implemented\)"):
        hold_folder(tmp_path)


@pytest.mark.parametrize("what", PLANTED)
def test_a_lock_that_is_no_file_is_refused_and_nothing_is_written(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = planted(tmp_path / ".lock", what)
    with pytest.raises(FolderHeldError, match=rf"\.lock: found {PLANTED[what]}.*move or remove it"):
        hold_folder(tmp_path)
    monkeypatch.setenv(RUN, "some")
    with pytest.raises(ReplacedRunError, match=rf"\.lock: found {PLANTED[what]}"):
        check_run(tmp_path)
    assert precious.read_text() == "mine"


def test_results_that_are_no_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("mine")
    with pytest.raises(FolderHeldError, match=r"results: cannot be held: .*File exists"):
        hold_folder(tmp_path / "results")


def test_a_folder_under_the_name_of_a_temporary_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "staged" / ".x.h5.01234567.part"
    (folder / "deep").mkdir(parents=True)
    os.mkfifo(tmp_path / ".y.h5.01234567.part")
    with pytest.raises(FolderHeldError, match=r"01234567\.part: found a folder under the name of"):
        remove_leftovers(tmp_path)
    folder.joinpath("deep").rmdir()
    folder.rmdir()
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["staged"]


@pytest.fixture
def earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run has held the results, and its jobs' folder is the current one; the name of the run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN, "earlier")
    hold_folder().close()
    return "earlier"


def begin_next_run(monkeypatch: pytest.MonkeyPatch, job_of: str) -> None:
    """Another run takes the results; this process stays a job of the first."""
    run_folder.name_run()
    hold_folder().close()
    remove_leftovers()
    monkeypatch.setenv(RUN, job_of)


def test_a_job_of_an_earlier_run_puts_no_file_there(
    earlier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = RESULTS / "records" / "w.jsonl"
    atomic_text(path, "first")
    begin_next_run(monkeypatch, job_of=earlier)
    held = r"results: another run \(process \d+ of \S+ on .*\) has"
    with pytest.raises(ReplacedRunError, match=held):
        atomic_text(path, "late")
    assert path.read_text() == "first"
    assert not list(RESULTS.rglob(LEFTOVERS))


def test_a_job_whose_temporary_file_is_gone_says_why(
    earlier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = RESULTS / "staged" / "w.h5"

    def write() -> None:
        with result_path(path) as temporary:
            temporary.write_text("half")
            begin_next_run(monkeypatch, job_of=earlier)
            assert not temporary.exists()

    with pytest.raises(ReplacedRunError):
        write()
    assert not path.exists()


def test_a_file_that_is_lost_otherwise_is_an_error_of_its_own(earlier: str) -> None:
    with pytest.raises(FileNotFoundError), result_path(RESULTS / "w") as temporary:
        temporary.unlink()


def test_a_run_that_has_ended_keeps_the_folder_until_the_next(
    earlier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_run()
    monkeypatch.setenv(RUN, "")
    hold_folder().close()  # not by Snakemake: no run that a job could belong to
    monkeypatch.setenv(RUN, earlier)
    with pytest.raises(ReplacedRunError):
        check_run()


def test_what_is_no_job_writes_where_it_likes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN, "copied")
    check_run()  # no shared folder: nobody has held it
    hold_folder().close()
    monkeypatch.delenv(RUN)
    hold_folder().close()
    atomic_text(RESULTS / "w", "text")
    assert (RESULTS / "w").read_text() == "text"


def test_a_folder_has_the_results_of_one_study_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("results/night")
    folder.mkdir(parents=True)
    claim_folder(Path("night.yaml"), folder)
    claim_folder(tmp_path / "night.yaml", folder)  # the same file
    assert (folder / ".study").read_text() == "night.yaml\n"
    for other in ("sub/night.yaml", "/elsewhere/night.yaml"):
        with pytest.raises(
            FolderHeldError, match=rf"has the results of night.yaml, not of {other}"
        ):
            claim_folder(Path(other), folder)
    (folder / ".study").unlink()
    claim_folder(Path("/elsewhere/night.yaml"), folder)
    assert (folder / ".study").read_text() == "/elsewhere/night.yaml\n"


def test_a_folder_elsewhere_has_the_results_of_one_of_two_files_of_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    for name in ("out", "here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    claim_folder(Path("night.yaml"), out)
    monkeypatch.chdir(tmp_path / "there")
    with pytest.raises(FolderHeldError, match=r"has the results of .*/here/night\.yaml, not of"):
        claim_folder(Path("night.yaml"), out)


@pytest.mark.parametrize("what", PLANTED)
def test_a_note_that_is_no_file_is_refused(what: str, tmp_path: Path) -> None:
    precious = planted(tmp_path / ".study", what)
    with pytest.raises(FolderHeldError, match=r"\.study: "):
        claim_folder(Path("night.yaml"), tmp_path)
    assert precious.read_text() == "mine"


def test_jobs_of_two_studies_have_two_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another study's run takes nothing from a job of this one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN, "ours")
    monkeypatch.setenv(run_folder.FOLDER, "")
    use_folder(Path("results/ours"))
    hold_folder().close()
    monkeypatch.setenv(RUN, "theirs")
    hold_folder(Path("results/theirs")).close()
    monkeypatch.setenv(RUN, "ours")
    atomic_text(Path("results/ours/w"), "text")
    use_folder(Path("results/theirs"))
    with pytest.raises(ReplacedRunError):
        check_run()


def test_a_folder_that_may_not_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, stat = tmp_path / "hidden", Path.stat

    def refused(path: Path, **options: Any) -> os.stat_result:
        if hidden in path.parents:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **options)

    hidden.mkdir()
    monkeypatch.setattr(Path, "stat", refused)
    assert visible_above(hidden / "night") == hidden
    with pytest.raises(FolderHeldError, match=r"night: cannot be read: .*Permission denied"):
        check_folder(tmp_path / "night.yaml", hidden / "night")
