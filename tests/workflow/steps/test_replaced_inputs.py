"""Inputs that were replaced by files of the same size and time are staged again."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from workflow import command
from workflow.config.loading import load_study
from workflow.steps.replaced_inputs import replaced_inputs
from workflow.steps.staging import stage
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


def test_of_the_same_size_and_time(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    staged = study.folder / "staged"
    assert replaced_inputs(study) == {}
    states = study.input_states("read")
    write(Path("other.h5"), 2)
    replace(Path("in.h5"), Path("other.h5"))
    assert study.input_states("read") == states, "so that Snakemake sees nothing"
    Path("other.qasm").write_text(BELL.replace("h q[0]", "x q[0]"))
    replace(Path("bell.qasm"), Path("other.qasm"))
    expected = {
        staged / "read.h5": [Path("in.h5")], staged / "circuit.h5": [Path("bell.qasm")],
    }  # fmt: skip
    assert replaced_inputs(study) == expected
    lines: list[list[str]] = []
    monkeypatch.setattr(command, "finished", lambda words: lines.append(words) or 1)
    command.main(["run", "night.yaml"])
    assert lines[0][3:7] == ["--forcerun", *map(str, expected), "--snakefile"]


def test_other_rights_are_no_other_content(study: Study) -> None:
    Path("in.h5").chmod(0o600)
    assert replaced_inputs(study) == {}


def test_a_damaged_staged_file_is_left_to_its_readers(study: Study) -> None:
    write(Path("in.h5"), 3)
    (study.folder / "staged" / "read.h5").write_bytes(b"none")
    assert replaced_inputs(study) == {}
