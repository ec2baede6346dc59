"""The workflow as a user runs it: dry run, a tiny run, edits, folders, studies that are refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from shared_runs import TINY
from snakemake_forks import run_snakemake

from tests.covers import EXHAUSTIVE
from tests.workflow.rules.tiny_project import Project
from workflow.preflight.loading import load_study
from workflow.storage.checked_json import read_object
from workflow.storage.files import sha256_of

pytestmark = pytest.mark.slow


@pytest.fixture
def project(root: Path, tmp_path: Path) -> Project:
    return Project(root, tmp_path, TINY)


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
    assert manifest["parameters"] == {name: study.parameters(name) for name in study.names}


def test_what_is_deleted_or_asked_for_now_is_made_again(finished: Project) -> None:
    """Records, which the manifest lists; the results of every precision, which were not kept."""
    record = finished.folder / "results" / "records" / "product.jsonl"
    content, text = record.read_bytes(), finished.study.read_text()
    record.unlink()
    done = finished.run("--dry-run")
    record.write_bytes(content)
    assert "would do  verify   product\n" in done.stdout + done.stderr
    finished.study.write_text(f"{text}keep_runs: true\n")
    done = finished.run("--dry-run")
    finished.study.write_text(text)
    assert "would do  run      spectrum\n" in done.stdout + done.stderr


def test_results_of_which_snakemake_knows_nothing(finished: Project) -> None:
    """It would take them for up to date, whatever the study is now."""
    known = finished.folder / ".snakemake"
    away = known.rename(finished.folder / "away")
    for flags in ("--dry-run",), (), ("results/staged/product.h5",):
        done = finished.run(*flags)
        assert done.returncode == 1
        assert f"{known} knows nothing" in done.stdout + done.stderr
    note = finished.folder / "results" / ".metadata"
    content = note.read_bytes()
    note.unlink()
    assert finished.run("--dry-run").returncode == 0, "they are taken for up to date"
    note.write_bytes(content)
    shutil.rmtree(known)
    away.rename(known)
    assert finished.run("--dry-run").returncode == 0


def test_one_line_for_each_step(finished: Project) -> None:
    (finished.folder / "results" / "tables" / "performance.md").unlink()
    done = finished.run()
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "tabulate results/tables" in line]
    assert len(lines) == 1
    assert "results verified" in lines[0]


def test_a_pipe_in_the_place_of_the_lock(project: Project) -> None:
    (project.folder / "results").mkdir()
    os.mkfifo(project.folder / "results" / ".lock")
    done = project.run()
    assert done.returncode != 0
    assert ".lock: found a pipe" in done.stderr
    assert "Traceback" not in done.stderr


def test_each_study_has_a_folder_of_its_own(project: Project) -> None:
    """The folder has its file's name; another file of that name is refused, and makes nothing."""
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
"""Mistakes of the whole study, of a key and of the file; then some that tests of the check have."""


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


@pytest.mark.parametrize(
    ("given", "message"),
    [("study=", "study: must be a path, got nothing"), ("stdy=x.yaml", "did you mean 'study'?")],
)
def test_a_study_that_the_command_line_does_not_name(
    root: Path, tmp_path: Path, given: str, message: str
) -> None:
    """The default study would run in its place, for a minute and a half."""
    flags = ["--snakefile", str(root / "Snakefile"), "--cores", "1", "--config", given]
    done = run_snakemake([*flags, "--dry-run"], tmp_path)
    assert done.returncode != 0
    assert message in done.stdout  # where Snakemake says what a dry run finds


def test_jobs_beside_cores(root: Path, tmp_path: Path) -> None:
    """Both are refused: such jobs would be timed on one core, and would lease no GPU."""
    project = Project(root, tmp_path, "device: cpu\nworkloads: {p: {kind: gemm, m: 2, n: 3, k: 4}}")
    done = project.run("--jobs", "2")
    assert done.returncode != 0
    assert "--jobs beside --cores: must be --cores N alone" in done.stderr
    assert not (tmp_path / "results").exists()
