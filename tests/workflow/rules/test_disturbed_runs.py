"""Runs that are killed, ended, damaged or started twice: the same command completes them."""

from __future__ import annotations

import re
import shutil
import signal
import socket
from pathlib import Path

import pytest
from rule_jobs import held_environ, held_run, killed_run, processes_of, release, running_job
from shared_runs import TABLES, TINY, failed, measured_as, repeatable

from tests.workflow.rules.tiny_project import TARGETS, Project

pytestmark = pytest.mark.slow


@pytest.fixture
def project(root: Path, tmp_path: Path) -> Project:
    return Project(root, tmp_path, TINY)


@pytest.fixture
def measured(project: Project, tiny_run: Path) -> Project:
    """A project in whose folder only the device's measurements are."""
    measured_as(project.folder, tiny_run)
    return project


@pytest.fixture(scope="module")
def finished(root: Path, tmp_path_factory: pytest.TempPathFactory, tiny_run: Path) -> Project:
    """A copy of the finished run, for the tests of this module to change."""
    folder = tmp_path_factory.mktemp("finished")
    shutil.copytree(tiny_run, folder, dirs_exist_ok=True)
    return Project(root, folder, TINY)


def test_killed_and_started_again(measured: Project, finished: Project) -> None:
    """Kill -9 in the middle; the same command finishes, with nothing by hand."""
    staged = measured.folder / "results" / "staged"
    killed = killed_run(
        measured.folder, lambda: measured.run(*TARGETS), lambda: any(staged.glob("*.h5"))
    )
    assert killed.returncode == -signal.SIGKILL
    assert list(staged.glob("*.h5")), "nothing was staged within a minute"
    assert not (measured.folder / "results" / "tables" / "performance.csv").exists()
    measured.complete()
    assert results_of(measured) == results_of(finished)


def results_of(project: Project) -> list[dict[str, str]]:
    """The rows of the table without what was measured."""
    return repeatable(project.rows())


def end_jobs(project: Project, *jobs: tuple[str, signal.Signals]) -> str:
    """Run, end a job of each rule in the middle, and wait for Snakemake: what it says."""
    folder, environ = project.folder, held_environ(project.folder)
    rules = [rule for rule, _ in jobs]
    with held_run(folder, lambda: project.run(*TARGETS, **environ), *rules) as run:
        for rule, number in jobs:
            running_job(folder, rule, 60).send_signal(number)
            release(folder, rule)
    assert run.result().returncode == 1
    return run.result().stderr


def test_an_ended_job_fails_alone_and_the_same_command_completes(
    measured: Project, finished: Project
) -> None:
    """SIGTERM of one workload's job, kill -9 of another's; then the tables of an undisturbed run.

    While that goes on, a second run on the folder begins, names the first and ends.
    """
    said = end_jobs(measured, ("stage", signal.SIGTERM), ("run", signal.SIGKILL))
    for rule in ("stage", "run"):
        assert re.search(rf"\] +{rule} +\w+ .* FAILED\b", said), said
    assert sorted(failed(measured.folder / TABLES)) == ["product", "spectrum"]
    environ = held_environ(measured.folder)
    with held_run(measured.folder, lambda: measured.run(*TARGETS, **environ), "run") as first:
        job = running_job(measured.folder, "run", 60)
        (snakemake,) = processes_of(measured.folder, "snakemake")
        staged = next((measured.folder / "results" / "staged").glob("*.h5"))
        before = staged.stat().st_mtime_ns
        second = measured.run("--forceall")
        assert second.returncode != 0
        who = f"process {snakemake.pid} of {snakemake.username()}"
        held = rf"{who} on {re.escape(socket.gethostname())}, since 20\S+ "
        assert re.search(rf"results: another run \({held}\S+\) works here", second.stderr)
        assert job.is_running()
        assert staged.stat().st_mtime_ns == before
    assert first.result().returncode == 0, first.result().stderr
    assert results_of(measured) == results_of(finished)
    assert not list((measured.folder / "results").rglob("*.part"))


@pytest.mark.exhaustive
def test_a_killed_run_gives_the_folder_back_though_its_job_goes_on(
    measured: Project, finished: Project
) -> None:
    environ = held_environ(measured.folder)
    with held_run(measured.folder, lambda: measured.run(*TARGETS, **environ), "run"):
        job = running_job(measured.folder, "run", 60)
        (snakemake,) = processes_of(measured.folder, "snakemake")
        snakemake.kill()
        measured.complete()
        assert job.is_running()
    assert results_of(measured) == results_of(finished)


def test_a_job_of_an_earlier_run_does_not_begin(finished: Project) -> None:
    """A scheduler starts it so: Snakemake would first remove the file that it is to make."""
    staged = finished.folder / "results" / "staged" / "product.h5"
    before = staged.stat().st_mtime_ns
    job = ("--mode", "remote", "--target-jobs", "stage:workload=product", "--force", "--nolock")
    done = finished.run(*job, ARGAND_RUN="of an earlier one")
    assert done.returncode != 0
    assert "has worked here since this job was submitted" in done.stderr
    assert staged.stat().st_mtime_ns == before
    run = (finished.folder / "results" / ".lock").read_text().splitlines()[1]
    done = finished.run(*job, ARGAND_RUN=run)
    assert done.returncode == 0, done.stderr
    assert (after := staged.stat().st_mtime_ns) > before
    text = finished.study.read_text()
    finished.study.write_text(text.replace("k: 10", "k: 11"))
    done = finished.run(*job, ARGAND_RUN=run)
    finished.study.write_text(text)
    assert done.returncode != 0
    assert "the study was edited since the run of this job began" in done.stderr
    assert staged.stat().st_mtime_ns == after
