"""The workflow as a user runs it: dry run, a real tiny run, interruption, rerun, mistakes."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from rule_jobs import running_job
from shared_runs import TABLES, TINY, failed, measured_as, repeatable
from snakemake_forks import run_snakemake, snakemake_command

from tests.covers import EXHAUSTIVE
from workflow.config.loading import load_study
from workflow.storage.checked_json import read_object
from workflow.storage.files import sha256_of

pytestmark = pytest.mark.slow

TARGETS = () if EXHAUSTIVE else (TABLES,)
"""What runs that are disturbed are to make: everything, or all that their tables need."""


class Project:
    """A folder to run a study in, from the repository's Snakefile."""

    def __init__(self, root: Path, folder: Path, study: str) -> None:
        self.root, self.folder = root, folder
        self.study = folder / "study.yaml"
        self.study.write_text(study)

    def command(self, *flags: str) -> list[str]:
        return snakemake_command(*self.flags(*flags))

    def flags(self, *flags: str) -> list[str]:
        return [
            "--snakefile", str(self.root / "Snakefile"), "--cores", "2",
            "--config", f"study={self.study}", "out=results", "--directory", str(self.folder),
            *flags,
        ]  # fmt: skip

    def run(self, *flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
        given = {**os.environ, **environ}
        return run_snakemake(self.flags(*flags), self.folder, given, self.root)

    def complete(self) -> None:
        """Run it to its tables, with nothing by hand."""
        done = self.run(*TARGETS)
        assert done.returncode == 0, done.stderr

    def rows(self) -> list[dict[str, str]]:
        with (self.folder / "results" / "tables" / "performance.csv").open() as file:
            return list(csv.DictReader(file))


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


def test_a_dry_run_needs_no_gpu_says_what_would_be_done_and_writes_nothing(
    root: Path, tmp_path: Path
) -> None:
    project = Project(root, tmp_path, TINY.replace("device: cpu", "device: cuda"))
    done = project.run("--dry-run")
    assert done.returncode == 0, done.stderr
    assert "would do  run      product\n" in done.stdout + done.stderr
    assert not (project.folder / "results").exists()


def test_a_run_leaves_what_it_promises(finished: Project) -> None:
    results = finished.folder / "results"
    for name in (
        "products/product.h5", "products/spectrum.h5", "tables/performance.csv",
        "tables/performance.md", "tables/performance.h5", "tables/accuracy.csv",
        "tables/accuracy.md", "figures/growth.svg", "figures/limits.svg",
        "figures/pareto/product.svg", "figures/products/spectrum.svg",
    ):  # fmt: skip
        assert (results / name).stat().st_size > 100, name
    assert not list((results / "runs").glob("*")), "runs are temporary unless the study keeps them"
    ours = [row for row in finished.rows() if row["implementation"] == "argand"]
    assert {(row["workload"], row["precision"]) for row in ours} == {
        (workload, precision)
        for workload in ("product", "spectrum")
        for precision in ("fp64", "fp32", "3xtf32")
    }
    assert all(row["verified"] == "true" for row in finished.rows())
    assert all(float(row["time_us_p50"]) > 0 for row in finished.rows())


def test_the_manifest_is_of_these_results(finished: Project) -> None:
    results = finished.folder / "results"
    manifest = read_object(results / "manifest.json")
    assert manifest["seed"] == 20260101
    assert manifest["inputs"] == {}
    assert manifest["computed_with"]["devices"] == [finished.rows()[0]["device"]]
    listed = manifest["files"]
    for name in ("products/product.h5", "tables/performance.csv", "records/spectrum.jsonl"):
        assert listed[f"results/{name}"] == sha256_of(results / name)
    assert {path for path in listed if "products/" in path} == {
        "results/products/product.h5",
        "results/products/spectrum.h5",
    }
    again, study = load_study(results / "study.yaml"), load_study(finished.study)
    assert again.names == study.names
    assert again.as_read() == study.as_read()
    assert all(again.case_json(name) == study.case_json(name) for name in study.names)


def test_one_line_for_each_step(finished: Project) -> None:
    (finished.folder / "results" / "tables" / "performance.md").unlink()
    done = finished.run()
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "tabulate results/tables" in line]
    assert len(lines) == 1
    assert "results verified" in lines[0]


def test_nothing_is_done_twice(finished: Project) -> None:
    done = finished.run()
    assert "Nothing to be done" in done.stderr + done.stdout


def test_only_what_a_changed_study_concerns_runs_again(finished: Project) -> None:
    changed = Project(finished.root, finished.folder, TINY.replace("length: 12", "length: 15"))
    done = changed.run("--dry-run")
    finished.study.write_text(TINY)
    planned = done.stdout + done.stderr
    assert "would do  run      spectrum\n" in planned
    assert "would do  run      product\n" not in planned


def test_an_edited_kernel_runs_again(root: Path, finished: Project, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for part in ("benchmarks", "kernels", "workflow", "profiles", "Snakefile", "envs"):
        target = copy / part
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", str(root / part), str(target)], check=True)
    moved = Project(copy, finished.folder, TINY)
    unchanged = moved.run("--dry-run", "--rerun-triggers", "params")
    assert "Nothing to be done" in unchanged.stdout + unchanged.stderr
    kernel = next((copy / "kernels" / "argand" / "cuda" / "gemm").glob("*.cuh"))
    kernel.write_text(kernel.read_text() + "\n// edited\n")
    done = moved.run("--dry-run", "--rerun-triggers", "params")
    planned = done.stdout + done.stderr
    assert "would do  run      product\n" in planned
    assert "would do  stage" not in planned


def test_killed_and_started_again(measured: Project, finished: Project) -> None:
    """Kill -9 in the middle; the same command finishes, with nothing by hand."""
    with subprocess.Popen(
        measured.command(*TARGETS), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:  # fmt: skip
        staged = measured.folder / "results" / "staged"
        deadline = time.monotonic() + 60
        while not list(staged.glob("*.h5")) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert list(staged.glob("*.h5")), "nothing was staged within a minute"
    assert not (measured.folder / "results" / "tables" / "performance.csv").exists()
    measured.complete()
    assert results_of(measured) == results_of(finished)


def results_of(project: Project) -> list[dict[str, str]]:
    """The rows of the table without what was measured."""
    return repeatable(project.rows())


def end_jobs(project: Project, *jobs: tuple[str, signal.Signals]) -> str:
    """Run, end a job of each rule when there is one, and wait for Snakemake: what it says."""
    with subprocess.Popen(
        project.command(*TARGETS), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        for rule, number in jobs:
            os.kill(running_job(project.folder, rule, 60), number)
        said = process.communicate()[1]
    assert process.returncode == 1
    return said


def test_an_ended_job_fails_alone_and_the_same_command_completes(
    measured: Project, finished: Project
) -> None:
    """SIGTERM of one workload's job, kill -9 of another's; then the tables of an undisturbed run.

    While that goes on, a second run on the folder begins, names the first and ends.
    """
    said = end_jobs(measured, ("stage", signal.SIGTERM), ("run", signal.SIGKILL))
    for rule in ("stage", "run"):
        assert re.search(rf"\] +{rule} +\w+ .* FAILED ", said), said
    assert sorted(failed(measured.folder / TABLES)) == ["product", "spectrum"]
    with running(measured) as (first, job):
        staged = next((measured.folder / "results" / "staged").glob("*.h5"))
        before = staged.stat().st_mtime_ns
        second = measured.run("--forceall")
        assert second.returncode != 0
        user = psutil.Process(first.pid).username()
        held = rf"process {first.pid} of {user} on {re.escape(socket.gethostname())}, since 20\S+ "
        assert re.search(rf"results: another run \({held}\S+\) works here", second.stderr)
        assert job.is_running()
        assert staged.stat().st_mtime_ns == before
    assert first.returncode == 0, (measured.folder / "said").read_text()
    assert results_of(measured) == results_of(finished)
    assert not list((measured.folder / "results").rglob("*.part"))


def test_a_damaged_staged_file_is_an_error_that_names_it(measured: Project) -> None:
    staged = measured.folder / "results" / "staged" / "product.h5"
    assert measured.run("results/staged/product.h5").returncode == 0
    stat = staged.stat()
    staged.write_bytes(staged.read_bytes()[:-200])
    os.utime(staged, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    done = measured.run("results/products/product.h5", "--rerun-triggers", "mtime")
    assert done.returncode != 0
    assert "staged/product.h5: missing, truncated or damaged" in done.stderr
    assert not (measured.folder / "results" / "products" / "product.h5").exists()


@contextlib.contextmanager
def running(project: Project) -> Iterator[tuple[subprocess.Popen[str], psutil.Process]]:
    """A run whose job is halted in the middle, and that job; both are let end with the block."""
    with (project.folder / "said").open("w") as said, subprocess.Popen(
        project.command(*TARGETS), stderr=said, stdout=said, text=True
    ) as process:  # fmt: skip
        job = psutil.Process(running_job(project.folder, "run", 60))
        job.suspend()
        try:
            yield process, job
        finally:
            job.resume()
            try:
                process.wait(300)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.mark.exhaustive
def test_a_killed_run_gives_the_folder_back_though_its_job_goes_on(
    measured: Project, finished: Project
) -> None:
    with running(measured) as (first, job):
        first.kill()
        first.wait()
        measured.complete()
        assert job.is_running()
    assert results_of(measured) == results_of(finished)


def test_a_pipe_in_the_place_of_the_lock(project: Project) -> None:
    (project.folder / "results").mkdir()
    os.mkfifo(project.folder / "results" / ".lock")
    done = project.run()
    assert done.returncode != 0
    assert ".lock: found a pipe" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_job_of_an_earlier_run_does_not_begin(finished: Project) -> None:
    """As a scheduler starts it: Snakemake would first remove the file that it is to make."""
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
    assert staged.stat().st_mtime_ns > before


def test_each_study_has_a_folder_of_its_own(project: Project) -> None:
    """By the name of its file; another file of that name is refused, and makes nothing."""
    folder = project.folder
    (folder / "night.yaml").write_text(TINY)
    (folder / "sub").mkdir()
    (folder / "sub" / "study.yaml").write_text(TINY.replace("n: 9", "n: 8"))

    def stage(study: str, name: str) -> subprocess.CompletedProcess[str]:
        flags = project.flags(f"results/{name}/staged/product.h5")
        at = flags.index("--config")
        flags[at + 1 : at + 3] = [f"study={study}"]
        return run_snakemake(flags, folder)

    for name in ("study", "night"):
        done = stage(f"{name}.yaml", name)
        assert done.returncode == 0, done.stderr
        assert (folder / "results" / name / "logs" / "stage" / "product.log").is_file()
    staged = folder / "results" / "study" / "staged" / "product.h5"
    before = staged.read_bytes()
    done = stage("sub/study.yaml", "study")
    assert done.returncode == 1
    assert "has the results of study.yaml, not of sub/study.yaml" in done.stderr
    assert staged.read_bytes() == before
    assert sorted(path.name for path in (folder / "results").iterdir()) == ["night", "study"]


def test_a_study_given_as_snakemakes_own_config(finished: Project) -> None:
    flags = finished.flags("--dry-run")
    at = flags.index("--config")
    flags[at : at + 2] = ["--configfile", str(finished.study), "--config"]
    done = run_snakemake(flags, finished.folder)
    assert "Nothing to be done" in done.stderr + done.stdout


def test_python_in_a_study_is_not_run(root: Path, tmp_path: Path) -> None:
    """Snakemake runs the Python in a --configfile that asks for it (YTE); ours is plain data."""
    planted = tmp_path / "planted"
    evil = f"""
__use_yte__: true
__definitions__: ["import pathlib; pathlib.Path({str(planted)!r}).touch()"]
{TINY}"""
    done = Project(root, tmp_path, evil).run()
    assert done.returncode != 0
    assert "__use_yte__: unknown key" in done.stderr
    assert not planted.exists()
    assert not (tmp_path / "results").exists()


MISTAKES = [
    ("workloads: {}", "the study is empty"),
    (TINY.replace("m: 8", "mm: 8"), "unknown key"),
    (TINY.replace("m: 8", "m: [8"), "not valid YAML"),
    ("device: cpu", "the study is empty"),
    (TINY.replace("kind: gemm", "kind: gem"), "did you mean 'gemm'"),
    (TINY.replace("3xtf32", "fp7"), "fp7"),
]
"""Of the whole study, of a key and of the file; then more that the tests of the check have too."""


@pytest.mark.parametrize(("study", "message"), MISTAKES if EXHAUSTIVE else MISTAKES[:3])
def test_a_mistake_is_a_message_before_any_job(
    root: Path, tmp_path: Path, study: str, message: str
) -> None:
    project = Project(root, tmp_path, study)
    done = project.run()
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()
