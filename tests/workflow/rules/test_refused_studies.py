"""Studies that are refused before any job: with Python in them, with mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from shared_runs import TINY
from snakemake_forks import run_snakemake

from tests.covers import EXHAUSTIVE
from tests.workflow.rules.tiny_project import Project

pytestmark = pytest.mark.slow


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
