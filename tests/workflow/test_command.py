"""Commands that ``argand run`` and ``argand report`` give to Snakemake, without running it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from workflow import command

TINY = "device: cpu\nworkloads:\n  product: {kind: gemm, m: 8, n: 9, k: 10}\n"


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The command lines that would be run, in a folder with two studies."""
    lines: list[list[str]] = []

    def run(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        lines.append(words[3:])
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v1.2.yaml").write_text(TINY)
    (tmp_path / "wrong.yaml").write_text(TINY.replace("m: 8", "m: -8"))
    return lines


@pytest.mark.parametrize(
    ("words", "folder"),
    [(["v1.2.yaml"], "results/v1.2"), (["v1.2.yaml", "--out", "elsewhere"], "elsewhere")],
)
def test_a_study_has_a_folder_and_a_report(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], words: list[str], folder: str
) -> None:
    assert command.main(["run", *words, "--cores", "3", "--", "--dry-run"]) == 0
    snakefile = ["--snakefile", str(command.ROOT / "Snakefile")]
    # Snakemake takes all words after --config up to the next option for keys.
    ran = [*snakefile, "--config", "study=v1.2.yaml", f"out={folder}", "--cores", "3"]
    report = ["reported", "--quiet", "all", "--report", f"{folder}/report.html"]
    assert called == [[*ran, "--dry-run"], [*ran, *report]]
    assert f"open {folder}/answer.html" in capsys.readouterr().out


def test_a_study_with_a_mistake_is_not_run(
    called: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["run", "wrong.yaml"]) == 1
    assert "workloads.product.m: " in capsys.readouterr().err
    assert called == []


def test_a_study_that_is_not_there(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command.main(["check", "other.yaml"]) == 1
    assert f"there is no file other.yaml (looked in {tmp_path})" in capsys.readouterr().err
    assert called == []


@pytest.mark.parametrize("cores", ["0", "x", "-1", "1.5", ""])
def test_cores_are_a_number_or_all(
    called: list[list[str]], capsys: pytest.CaptureFixture[str], cores: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["check", "v1.2.yaml", f"--cores={cores}"])
    assert "must be a number from 1 on or 'all'" in capsys.readouterr().err
    assert called == []


def test_a_cluster_computes(called: list[list[str]], tmp_path: Path) -> None:
    profile = tmp_path / "ours"
    profile.mkdir()
    (profile / "config.yaml").write_text("executor: slurm\njobs: 4\n")
    (tmp_path / "v1.2.yaml").write_text(TINY.replace("cpu", "cuda"))  # no GPU is needed here
    assert command.main(["run", "v1.2.yaml", "--profile", str(profile)]) == 0
    assert called[0][-2:] == ["--workflow-profile", str(profile)]


@pytest.mark.parametrize(
    "words", [["run", "--profile", "no/such"], ["run", "v1.2.yaml", "--out", "."], ["check", "-x"]]
)
def test_wrong_words(called: list[list[str]], words: list[str]) -> None:
    try:
        status = command.main(words)
    except SystemExit as ended:
        status = int(str(ended.code))
    assert (status, called) == (command.MISTAKE, [])
