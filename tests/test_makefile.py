"""What the Makefile would run: paths of a study's results, targets that no option takes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from workflow.config.file_names import folder_of

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def commands(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["make", "--dry-run", *words], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.replace("\\\n", " ")


@pytest.mark.parametrize(
    ("given", "study", "folder"),
    [
        ((), "config/config.yaml", "results/config"),
        (("STUDY=",), "config/config.yaml", "results/config"),
        (("STUDY=examples/hera.yaml",), "examples/hera.yaml", "results/hera"),
        (("STUDY=a/v1.2.yaml", "OUT="), "a/v1.2.yaml", "results/v1.2"),
        (("STUDY=a/night.yaml", "OUT=/disk/night"), "a/night.yaml", "/disk/night"),
    ],
)
def test_each_study_has_a_folder(
    root: Path, given: tuple[str, ...], study: str, folder: str
) -> None:
    said = commands(root, "run", *given)
    assert f"--config study={study} out={folder} " in said
    assert f"workflow.config.check  --out {folder} {study}" in said
    assert f"open {folder}/answer.html" in said
    assert f"rm -f {folder}/report.html;" in said
    if not folder.startswith("/"):
        assert folder_of(Path(study)) == Path(folder)


def test_the_report_is_a_target_and_no_key_of_the_config(root: Path) -> None:
    """Snakemake takes all words after --config up to the next option for keys."""
    (line,) = [line for line in commands(root, "report").splitlines() if "--report" in line]
    words = line.split()
    config = words[words.index("--config") + 1 :]
    until_next = config[: next(
        place for place, word in enumerate(config) if word.startswith("--")
    )]  # fmt: skip
    assert until_next == ["study=config/config.yaml", "out=results/config"]
    assert "reported" in config
