"""Inputs replaced by files of the same size and time, and results whose time is in the future."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from workflow.preflight.future_results import age_future
from workflow.preflight.loading import load_study
from workflow.preflight.replaced_inputs import age_replaced
from workflow.steps.staging import stage
from workflow.storage.memory import in_words
from workflow.study import Study

BELL = 'OPENQASM 2.0; include "qelib1.inc"; qreg q[2]; h q[0]; cx q[0], q[1];'
STUDY = """
device: cpu
workloads:
  read: {kind: gemm, input: {file: in.h5, a: a, b: a}}
  circuit: {kind: statevector, circuit: {file: bell.qasm}}
  drawn: {kind: gemm, m: 2, n: 3, k: 4}
"""


def write(path: Path, content: float) -> None:
    with h5py.File(path, "w") as file:
        file["a"] = np.full((3, 3), content, np.complex64)


def replace(path: Path, other: Path) -> None:
    """Put another file in a place, with its time of change."""
    before = path.stat()
    assert other.stat().st_size == before.st_size
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study whose workloads are staged, but for the one that is drawn."""
    monkeypatch.chdir(tmp_path)
    write(Path("in.h5"), 1)
    Path("bell.qasm").write_text(BELL)
    Path("night.yaml").write_text(STUDY)
    found = load_study(Path("night.yaml"), folder=Path("results/night"))
    for name in ("read", "circuit"):
        staged = found.folder / "staged" / f"{name}.h5"
        staged.parent.mkdir(parents=True, exist_ok=True)
        stage(found.workload(name), [], staged, logging.getLogger())
    return found


def aged(study: Study) -> tuple[list[Path], list[str]]:
    said: list[str] = []
    return age_replaced(study, study.folder, said.append), said


def test_of_the_same_size_and_time(study: Study) -> None:
    staged = study.folder / "staged"
    assert aged(study) == ([], [])
    states = study.input_states("read")
    write(Path("other.h5"), 2)
    replace(Path("in.h5"), Path("other.h5"))
    assert study.input_states("read") == states, "so that Snakemake sees nothing"
    Path("other.qasm").write_text(BELL.replace("h q[0]", "x q[0]"))
    replace(Path("bell.qasm"), Path("other.qasm"))
    found, said = aged(study)
    assert found == [staged / "read.h5", staged / "circuit.h5"]
    assert said == [
        f"{file}: not what {made} was made of, so that is made again"
        for file, made in zip(("in.h5", "bell.qasm"), found, strict=True)
    ]
    assert all(path.stat().st_mtime < Path("in.h5").stat().st_mtime for path in found)


def test_two_inputs_of_one_workload_that_change_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of the same size and time: halves of a virtual dataset."""
    monkeypatch.chdir(tmp_path)
    layout = h5py.VirtualLayout((6, 3), np.complex64)
    for number, name in enumerate(("one.h5", "two.h5")):
        write(Path(name), number + 1.0)
        os.utime(name, ns=(0, 10**18))
        layout[3 * number : 3 * number + 3] = h5py.VirtualSource(name, "a", (3, 3))
    with h5py.File("in.h5", "w") as file:
        file.create_virtual_dataset("a", layout)
        file["b"] = np.ones((3, 3), np.complex64)
    source = {"file": "in.h5", "a": "a", "b": "b", "external": True}
    given = {"device": "cpu", "workloads": {"w": {"kind": "gemm", "input": source}}}
    study = load_study(given, folder=Path("results"))
    staged = study.folder / "staged" / "w.h5"
    staged.parent.mkdir(parents=True)
    stage(study.workload("w"), [], staged, logging.getLogger())
    states = study.input_states("w")
    Path("one.h5").rename("kept.h5")
    Path("two.h5").rename("one.h5")
    Path("kept.h5").rename("two.h5")
    assert study.input_states("w") == states, "so that Snakemake sees nothing"
    found, said = aged(study)
    assert found == [staged]
    assert said[0].startswith("one.h5, two.h5: not what results/staged/w.h5 was made of")


def test_a_link_that_leads_to_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both files were there before, of the same size and time."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("one.h5", "two.h5")):
        write(Path(name), number + 1.0)
        os.utime(name, ns=(0, 10**18))
    Path("in.h5").symlink_to("one.h5")
    case = {"kind": "gemm", "input": {"file": "in.h5", "a": "a", "b": "a"}}
    study = load_study({"device": "cpu", "workloads": {"w": case}}, folder=Path("results"))
    staged = study.folder / "staged" / "w.h5"
    staged.parent.mkdir(parents=True)
    stage(study.workload("w"), [], staged, logging.getLogger())
    assert aged(study) == ([], [])
    Path("in.h5").unlink()
    Path("in.h5").symlink_to("two.h5")
    assert aged(study)[0] == [staged]


def test_an_input_that_was_touched_is_read_once(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = study.folder / "staged" / "read.h5"
    written = staged.stat().st_mtime_ns
    Path("in.h5").chmod(0o600)
    time.sleep(0.02)  # beyond the milliseconds that have one time
    monkeypatch.setattr("workflow.preflight.replaced_inputs._SAID_BYTES", 1)
    size = Path("in.h5").stat().st_size
    line = f"in.h5: touched since it was staged; reading its {in_words(size)}"
    assert aged(study) == ([], [line])
    assert aged(study) == ([], [])
    assert staged.stat().st_mtime_ns == written, "so that Snakemake makes nothing again"


def test_a_newer_input_is_left_to_snakemake(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflow.preflight.replaced_inputs._SAID_BYTES", 1)
    write(Path("in.h5"), 3)
    assert aged(study) == ([], [])


def test_a_damaged_staged_file_is_left_to_its_readers(study: Study) -> None:
    write(Path("other.h5"), 3)
    (study.folder / "staged" / "read.h5").write_bytes(b"none")
    replace(Path("in.h5"), Path("other.h5"))
    assert aged(study) == ([], [])


def put(path: Path, ahead_s: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    now = time.time()
    os.utime(path, (now, now + ahead_s))
    return path


def test_results_of_tomorrow_are_older_than_any_file(tmp_path: Path) -> None:
    day = 86400.0
    old = [put(tmp_path / "products" / "beams" / "1-of-2.h5", day), put(tmp_path / "a.md", day)]
    kept = [
        put(tmp_path / "staged" / "beams.h5", 5),  # the clock of a file server
        put(tmp_path / "records" / "beams.jsonl", -day),
        put(tmp_path / "logs" / "run" / "beams.log", day),
        put(tmp_path / ".lock", day),
        put(tmp_path / "times" / "beams.json", day),
    ]
    outside = put(tmp_path.parent / "outside", day)
    link = tmp_path / "staged" / "link.h5"
    link.symlink_to(outside)
    os.utime(link, (time.time() + day,) * 2, follow_symlinks=False)
    times = [path.stat().st_mtime_ns for path in [*kept, outside]]
    said: list[str] = []
    assert set(age_future(tmp_path, said.append)) == set(old)
    assert said == [
        f"{tmp_path}: 2 files changed in the future, such as a.md: was a clock set back? What "
        "follows from an input is made again"
    ]
    assert [path.stat().st_mtime_ns for path in old] == [0, 0]
    assert [path.stat().st_mtime_ns for path in [*kept, outside]] == times
    assert (age_future(tmp_path, said.append), len(said)) == ([], 1)


def test_results_that_are_not_there(tmp_path: Path) -> None:
    assert age_future(tmp_path / "night", pytest.fail) == []
