"""Data of examples: fetched from a repository by commit and path, checked against their SHA-256."""

from __future__ import annotations

import hashlib
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.conftest import DATA
from tools import examples
from tools.examples import FetchError, Source, fetch, main, read_sources
from workflow.preflight.loading import load_study

FILES = {"in/one.bin": b"\0\1\2" * 1000, "two.txt": b"second\n"}
PUBLISHED = {
    "b11aCsmEss.h5": "acoustic/b11aCsmEss.h5",
    "zen.2458098.45361.uvh5": "vis/hera_zen.2458098.45361.uvh5",
    "1061315448_mini.uvh5": "vis/mwa128_1061315448_mini.uvh5",
    "sample_0x1_ap.dat": "csi/iwl5300_sample_0x1_ap.dat",
}
"""Where copies of published files lie beside the repository, but for circuits."""
OF_A_PACKAGE = {"sample_puppi.raw"}
"""Those that come with baseband, whose copy `test_vdif` compares."""


def git(folder: Path, *arguments: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    command = ["git", *own, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A repository with two files, of which a later commit changes one."""
    folder = tmp_path / "published"
    (folder / "in").mkdir(parents=True)
    git(folder, "init", "--quiet")
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        git(folder, "config", key, "true")
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "first")
    commit = git(folder, "rev-parse", "HEAD")
    (folder / "two.txt").write_text("changed\n")
    git(folder, "commit", "--quiet", "-am", "second")
    files = {
        Path(name).name: {"path": name, "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in FILES.items()
    }
    return Source(f"file://{folder}", commit, "none", files)


def test_files_of_the_commit_are_fetched_once(source: Source, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "here"
    assert fetch(source, folder) == ["one.bin", "two.txt"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        Path(name).name: data for name, data in FILES.items()
    }
    assert fetch(replace(source, repository="file:///nowhere"), folder) == []
    (folder / "two.txt").write_text("damaged")
    assert fetch(source, folder) == ["two.txt"]


def test_another_content_is_refused_and_not_written(source: Source, tmp_path: Path) -> None:
    wrong = dict(source.files) | {"two.txt": {"path": "two.txt", "sha256": "0" * 64}}
    with pytest.raises(FetchError, match=r"two.txt of file://.* has SHA-256 .*nothing was written"):
        fetch(replace(source, files=wrong), tmp_path / "data")
    assert not (tmp_path / "data" / "two.txt").exists()
    assert not list((tmp_path / "data").glob("*.part"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"repository": "file:///nowhere"}, "git fetch .*nowhere"),
        ({"commit": "0" * 40}, "git fetch"),
        ({"files": {"x": {"path": "../x", "sha256": ""}}}, "git cat-file blob"),
    ],
)
def test_what_cannot_be_fetched_says_why(
    source: Source, change: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(FetchError, match=message):
        fetch(replace(source, **change), tmp_path / "data")


def test_no_git(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match="git is not installed"):
        fetch(source, tmp_path / "data")


def test_the_command(
    source: Source,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(examples, "read_sources", lambda: {"mine": source})
    monkeypatch.setattr(examples, "DATA", tmp_path / "data")
    assert main(["mine"]) == 0
    assert "fetched 2 of file://" in capsys.readouterr().out
    assert main(["mine", "--repository", "file:///nowhere"]) == 0, "all of it is here"
    (tmp_path / "data" / "mine" / "one.bin").unlink()
    assert main(["mine", "--repository", "file:///nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_an_example_that_computes_its_data(capsys: pytest.CaptureFixture[str], root: Path) -> None:
    assert main(["cylinder"]) == 0
    assert "nothing to fetch" in capsys.readouterr().out
    (case,) = load_study(root / "examples" / "cylinder.yaml").workloads.values()
    assert (case.kind, case.input) == ("solve", None)


def test_every_source_is_of_a_study_that_reads_all_of_its_files(root: Path) -> None:
    for name, source in read_sources().items():
        assert len(source.commit) == 40
        assert all(len(row["sha256"]) == 64 for row in source.files.values())
        path = root / "examples" / f"{name}.yaml"
        load_study(path)
        text = yaml.safe_dump(yaml.safe_load(path.read_text()))
        for file in source.files:
            assert f"examples/data/{name}/{file}" in text


def test_no_script_stands_beside_the_studies_and_each_is_in_the_gallery(root: Path) -> None:
    found = {path.name for path in (root / "examples").iterdir() if path.is_file()}
    names = [*read_sources(), *examples.without_data()]
    assert found == {"sources.yaml", *(f"{name}.yaml" for name in names)}
    gallery = (root / "docs" / "examples.md").read_text()
    assert all(f"NAME={name}" in gallery for name in names)
    assert "make run STUDY=config/observatory.yaml" in gallery
    pictures = set(re.findall(r"\]\((pictures/[a-z-]+\.svg)\)", gallery))
    assert len(pictures) == len([*names, "observatory"])
    assert all((root / "docs" / name).is_file() for name in pictures)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the folder of real data {DATA} is not here")
def test_published_files_are_those_of_the_tests() -> None:
    for source in read_sources().values():
        for name in source.files.keys() - OF_A_PACKAGE:
            row = source.files[name]
            held = DATA / PUBLISHED.get(name, f"qasm/{name}")
            assert hashlib.sha256(held.read_bytes()).hexdigest() == row["sha256"]
