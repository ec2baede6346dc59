"""The manifest of results, and the study beside it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from workflow.files.input_error import InputError
from workflow.outcome import manifest as module
from workflow.outcome.manifest import write_manifest
from workflow.preflight.loading import load_study
from workflow.records import Record
from workflow.storage.checked_json import read_object
from workflow.storage.files import sha256_of


def record(**more: str) -> Record:
    known = {"workload": "w", "kind": "gemm", "implementation": "argand", "precision": "fp32"}
    return Record(**{**known, "algorithm": "a", "device": "d", "seed": 7, **more})


def test_what_it_says(tmp_path: Path) -> None:
    given, product = tmp_path / "in.h5", tmp_path / "w.h5"
    given.write_bytes(b"in")
    product.write_bytes(b"out")
    path, study = tmp_path / "manifest.json", tmp_path / "study.yaml"
    rows = [
        record(timestamp=f"2026-11-2{day}T00:00:00Z", kernel_digest=digest, versions=f"v{digest}")
        for day, digest in ((3, "k"), (1, ""), (2, "k"))
    ]
    write_manifest(path, study, {"seed": 7}, rows, {"w": [given]}, [product])
    found = read_object(path)
    assert found["seed"] == 7
    assert found["computed"] == ["2026-11-21T00:00:00Z", "2026-11-23T00:00:00Z"]
    assert found["inputs"] == {str(given): sha256_of(given)}
    assert found["files"] == {str(file): sha256_of(file) for file in (product, study)}
    assert found["computed_with"] == {
        "devices": ["d"], "versions": ["v", "vk"], "kernel_digests": ["k"],
    }  # fmt: skip
    assert found["machine"]["cores"] > 0
    assert "numpy" in found["versions"]
    assert len(found["code"]["commit"] or 40 * "0") == 40


def test_an_input_that_is_gone_or_another_is_an_error_that_names_it(tmp_path: Path) -> None:
    given, other = tmp_path / "in.h5", tmp_path / "other.h5"
    paths = tmp_path / "m.json", tmp_path / "s.yaml"
    given.write_bytes(b"in")
    other.write_bytes(b"of another workload")
    rows = [
        record(), record(source_sha256=f"{sha256_of(other)}; {sha256_of(given)}"),
    ]  # fmt: skip
    inputs = {"w": [other, given]}
    assert len(write_manifest(*paths, {}, rows, inputs, [])["inputs"]) == 2
    paths[0].unlink()
    given.write_bytes(b"IN")
    with pytest.raises(InputError, match=r"^w: [^ ]*in\.h5 has changed since it was staged"):
        write_manifest(*paths, {}, rows, inputs, [])
    given.unlink()
    with pytest.raises(InputError, match=r"^[^ ]*in\.h5 cannot be read any more \(No such file"):
        write_manifest(*paths, {}, rows, inputs, [])
    assert not paths[0].exists()


@pytest.mark.parametrize("workloads", [("w", "w"), ("w", "v")])
def test_inputs_that_change_places(tmp_path: Path, workloads: tuple[str, str]) -> None:
    """Each file must be what results of its workload were made of, be it one workload or two."""
    one, other = tmp_path / "one.h5", tmp_path / "other.h5"
    one.write_bytes(b"of one")
    other.write_bytes(b"of another")
    inputs: dict[str, list[Path]] = {}
    for name, file in zip(workloads, (one, other), strict=True):
        inputs.setdefault(name, []).append(file)
    rows = [
        record(workload=name, source_sha256="; ".join(map(sha256_of, files)))
        for name, files in inputs.items()
    ]
    paths = tmp_path / "m.json", tmp_path / "s.yaml"
    write_manifest(*paths, {}, rows, inputs, [])
    one.rename(tmp_path / "kept")
    other.rename(one)
    (tmp_path / "kept").rename(other)
    with pytest.raises(InputError, match=r"^w: [^ ]*one\.h5.* has changed since it was staged"):
        write_manifest(*paths, {}, rows, inputs, [])


def test_outside_of_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert module._code() == {"commit": None, "changed": None}


def test_the_commit_is_that_of_our_own_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@y")
        command = ["git", "-C", str(tmp_path), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / "inner").mkdir()
    git("init")
    git("commit", "--allow-empty", "-m", "x")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert module._code() == {"commit": git("rev-parse", "HEAD"), "changed": False}
    (tmp_path / "new.py").touch()
    assert module._code() == {"commit": git("rev-parse", "HEAD"), "changed": True}
    monkeypatch.setattr(module, "ROOT", tmp_path / "inner")
    assert module._code() == {"commit": None, "changed": None}


def test_names_that_mean_something_in_yaml_read_back(tmp_path: Path) -> None:
    """Names and texts such as no, 1e5 and !!python stay text."""
    case = {"kind": "gemm", "m": [2, 3], "n": 2, "k": 2}
    study = load_study({"workloads": {"no": case, "1e5": case, "0": case}, "device": "cpu"})
    content = json.loads(study.as_read())
    write_manifest(tmp_path / "m.json", tmp_path / "study.yaml", content, [], {}, [])
    again = load_study(tmp_path / "study.yaml")
    assert again.names == study.names
    assert [again.case_json(n) for n in again.names] == [study.case_json(n) for n in study.names]
