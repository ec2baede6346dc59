"""Results are of one `.snakemake`, which knows what each was made of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workflow import command
from workflow.storage.run_folder import FolderHeldError
from workflow.storage.run_metadata import check_metadata, note_metadata

TINY = "device: cpu\nworkloads:\n  product: {kind: gemm, m: 8, n: 9, k: 10}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def test_another_folder_knows_nothing_of_them(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows there of what the results are, so a run after an edit would keep them."""
    results, other = here.parent / "results", here.parent / "other"
    check_metadata(results)
    for _ in range(2):
        note_metadata(results)
        check_metadata(results)
    moved = here.rename(here.parent / "moved")  # with its .snakemake
    monkeypatch.chdir(moved)
    check_metadata(results)
    other.mkdir()
    monkeypatch.chdir(other)
    for refused in (check_metadata, note_metadata):
        with pytest.raises(FolderHeldError, match="Run in that folder, or remove "):
            refused(results)
    Path("study.yaml").write_text(TINY)
    assert command.main(["run", "study.yaml", f"--out={results}"]) == 1
    assert f"has results of which {other}/.snakemake knows nothing" in capsys.readouterr().err
    assert not (other / ".snakemake").exists()


def test_a_folder_that_was_moved_has_another_path(here: Path) -> None:
    """Snakemake finds nothing of its results by the new path, and would take all as up to date."""
    note_metadata(Path("results"))
    Path("results").rename("moved")
    with pytest.raises(FolderHeldError, match=r"^moved: .*knows as results, .*Give it that path"):
        check_metadata(Path("moved"))


@pytest.mark.parametrize("name", ["study.yaml", "manifest.json", "products/x.h5"])
def test_files_of_a_users_own_are_not_replaced(
    here: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The study itself was, where it was called study.yaml."""
    (here / "night" / name).parent.mkdir(parents=True)
    for path in (here / "night" / name, here / "study.yaml"):
        path.write_text(TINY)
    assert command.main(["run", "study.yaml", "--out", "night"]) == 1
    first = name.partition("/")[0]
    assert f"night: has {first}, which no run made there" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "\n", "../x\n", ".\n", "\0\n", "é\n"])
def test_a_note_that_is_damaged_is_of_nothing(here: Path, content: str) -> None:
    results = here / "results"
    note_metadata(results)
    (results / ".metadata").write_text(content)
    with pytest.raises(FolderHeldError, match="knows nothing"):
        check_metadata(results)


def test_a_note_that_is_no_file_is_refused(here: Path) -> None:
    results = here / "results"
    results.mkdir()
    note = results / ".metadata"
    note.symlink_to(here / "nothing")
    with pytest.raises(FolderHeldError, match="found a symbolic link"):
        check_metadata(results)
    note.unlink()
    os.mkfifo(note)
    with pytest.raises(FolderHeldError, match="found a pipe"):
        note_metadata(results)
    note.unlink()
    note_metadata(results)
    (token,) = (here / ".snakemake" / "argand").iterdir()
    (here / "backup").hardlink_to(token)
    with pytest.raises(FolderHeldError, match=r"argand/\w+: .*found a file with 2 names"):
        check_metadata(results)
