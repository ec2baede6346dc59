"""Changes outside a study make Snakemake do again what depends on them, and no more."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from input_files import put
from shared_runs import TABLES
from slurm_project import Project

from workflow.records import read_records

pytestmark = pytest.mark.slow

STUDY = """
device: cpu
precisions: [fp32]
grade: true
baselines: none
keep_runs: true
workloads:
  product: {kind: gemm, m: 8, n: 9, k: 10}
  other: {kind: dft, length: 12, batch: 3, precision: fp32}
"""
TARGETS = (TABLES, "results/products/product.h5", "results/products/other.h5")
LINKED = """
device: cpu
workloads:
  linked: {kind: gemm, input: {file: in.h5, a: linked, b: virtual, external: true}}
  circuit: {kind: statevector, circuit: {file: bell.qasm}}
"""
BELL = 'OPENQASM 2.0; include "qelib1.inc"; qreg q[2]; h q[0]; cx q[0], q[1];'


def planned(project: Project, *flags: str) -> set[str]:
    """The steps that a dry run would do, as "rule workload"."""
    said = project.run("--dry-run", *flags)
    lines = [
        line.split("would do", 1)[1].split() for line in said.splitlines() if "would do" in line
    ]
    return {" ".join(words[:2]) for words in lines}


@pytest.fixture(scope="module")
def finished(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of `STUDY`, and a copy of the workflow that has nothing to do, both to be edited."""
    copy, folder = (tmp_path_factory.mktemp(name) for name in ("copy", "study"))
    Project(root, folder, dict(os.environ), STUDY).run(*TARGETS)
    for part in ("benchmarks", "kernels", "workflow", "profiles", "envs"):
        shutil.copytree(root / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "Snakefile", copy)
    project = Project(copy, folder, dict(os.environ), STUDY)
    assert planned(project, *TARGETS) == set()
    return project


def test_an_edited_module_of_the_workflow(finished: Project) -> None:
    def after(edited: str, edit: str = "EDITED = True") -> set[str]:
        path = finished.root / edited
        before = path.read_text()
        path.write_text(f"{before}\n{edit}\n")
        found = planned(finished, *TARGETS)
        path.write_text(before)
        return found

    of_bounds = after("workflow/accuracy/bounds.py")
    assert {"verify product", "deliver product", "grade growth"} <= of_bounds
    assert not of_bounds & {"stage product", "run product"}
    of_timing = after("workflow/measuring/timing.py")
    assert {"run product", "verify product"} <= of_timing
    assert "stage product" not in of_timing
    of_kernel = after("kernels/argand/cuda/gemm/sm80_kernel.cuh", "// edited")
    assert "run product" in of_kernel
    assert not any(step.startswith("stage") for step in of_kernel)


def test_an_edited_study(root: Path, finished: Project) -> None:
    """A choice of the result times nothing again, a precision stages nothing, a size everything.

    The workflow itself decides, whose code is that of the copy.
    """
    project = Project(root, finished.folder, dict(os.environ), STUDY)

    def after(found: str, edited: str) -> set[str]:
        (project.folder / "study.yaml").write_text(STUDY.replace(found, edited))
        return planned(project, *TARGETS)

    tolerant = after("k: 10}", "k: 10, tolerance: 1.0e-3}")
    assert {"verify product", "deliver product"} <= tolerant
    assert not tolerant & {"stage product", "run product"}
    named = after("k: 10}", "k: 10, precision: fp32}")
    assert "deliver product" in named
    assert not named & {"stage product", "run product"}
    wider = after("k: 10}", "k: 10, precisions: [fp32, tf32]}")
    assert {"run product", "verify product", "deliver product"} <= wider
    assert "stage product" not in wider
    larger = after("k: 10}", "k: 11}")
    assert {"stage product", "run product", "verify product", "deliver product"} <= larger
    for found in (tolerant, named, wider, larger):
        assert not any(step.endswith(" other") for step in found)
    assert not any(step.startswith("grade") for step in larger)
    assert after("k: 10}", "k: 10}") == set()


def test_a_result_that_is_gone_is_computed_again(root: Path, tmp_path: Path) -> None:
    """Without ``keep_runs`` the results of a run go once one of them is delivered; times stay."""
    study = STUDY.replace("grade: true\n", "").replace("keep_runs: true", "keep_runs: false")
    project = Project(root, tmp_path, dict(os.environ), study)
    targets = ("results/products/product.h5",)
    project.run(*targets)
    assert planned(project, *targets) == set()
    (tmp_path / "study.yaml").write_text(study.replace("k: 10}", "k: 10, tolerance: 1.0e-3}"))
    found = planned(project, *targets)
    assert {"run product", "verify product", "deliver product"} <= found
    assert "stage product" not in found
    records = tmp_path / "results" / "records" / "product.jsonl"
    before = read_records(records)
    project.run(*targets)
    assert not (tmp_path / "results" / "runs" / "product.h5").exists()
    again = read_records(records)
    assert [row.tolerance for row in again] == [1e-3]
    assert [replace(row, tolerance=before[0].tolerance) for row in again] == before
    said = (tmp_path / "results" / "logs" / "run" / "product.log").read_text()
    assert "1 of 1 rows have the times of an earlier run" in said


def test_other_files_that_an_input_names(root: Path, tmp_path: Path) -> None:
    for name in ("linked", "source"):
        put(tmp_path / f"{name}.h5", x=np.eye(4, dtype=np.complex64))
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["linked"] = h5py.ExternalLink("linked.h5", "/x")
        layout = h5py.VirtualLayout((4, 4), "c8")
        layout[:] = h5py.VirtualSource("source.h5", "x", (4, 4))
        file.create_virtual_dataset("virtual", layout)
    (tmp_path / "bell.qasm").write_text(BELL)
    project = Project(root, tmp_path, dict(os.environ), LINKED)
    project.run("--until", "stage")
    for name, workload in (
        ("linked.h5", "linked"),
        ("source.h5", "linked"),
        ("bell.qasm", "circuit"),
    ):
        path = tmp_path / name
        content, stat = path.read_bytes(), path.stat()
        if name.endswith("h5"):
            with h5py.File(path, "r+") as file:
                file["x"][0, 1] = 7
        else:
            path.write_text(BELL + " x q[0];")
        assert planned(project, "--until", "stage") == {f"stage {workload}"}
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert planned(project, "--until", "stage") == set()


def test_an_older_file_in_the_place_of_an_input(root: Path, tmp_path: Path) -> None:
    """`mv`, `cp -p` or a link brings a file older than the results that the other one made."""
    for name, factor in (("first", 1), ("second", 2)):
        (tmp_path / name).mkdir()
        with h5py.File(tmp_path / name / "x.h5", "w") as file:
            file["x"] = factor * np.ones((150, 150), np.complex64)  # Snakemake hashes small files
        os.utime(tmp_path / name / "x.h5", ns=(0, 10**15 * len(name)))
    night = tmp_path / "night"
    night.symlink_to("first")
    study = (
        "device: cpu\nworkloads: {w: {kind: dft, axis: -1, input: {file: night/x.h5, samples: x}}}"
    )
    project = Project(root, tmp_path, dict(os.environ), study)
    project.run("--until", "stage")
    assert planned(project, "--until", "stage") == set()
    night.unlink()
    night.symlink_to("second")  # of which the status of the file itself says nothing
    assert planned(project, "--until", "stage") == {"stage w"}
    night.unlink()
    night.mkdir()
    (night / "x.h5").symlink_to("../second/x.h5")
    os.utime(night / "x.h5", ns=(0, 0), follow_symlinks=False)
    assert planned(project, "--until", "stage") == {"stage w"}
    (night / "x.h5").unlink()
    shutil.copy2(tmp_path / "second" / "x.h5", night)
    assert planned(project, "--until", "stage") == {"stage w"}
    project.run("--until", "stage")
    assert planned(project, "--until", "stage") == set()


def test_an_input_of_the_same_size_and_time_as_before(root: Path, tmp_path: Path) -> None:
    """Users of plain Snakemake get the new file too, and a dry run says that they will."""
    path = tmp_path / "night.h5"

    def write(content: float) -> None:
        put(path, x=np.full((150, 150), content, np.complex64))
        os.utime(path, ns=(10**15, 10**15))

    write(1)
    study = (
        "device: cpu\nworkloads: {w: {kind: dft, axis: -1, input: {file: night.h5, samples: x}}}"
    )
    project = Project(root, tmp_path, dict(os.environ), study)
    project.run("--until", "stage")
    write(2)
    said = project.run("--dry-run", "--until", "stage")
    assert "night.h5: not what results/staged/w.h5 was made of, so that is made again" in said
    assert planned(project, "--until", "stage") == {"stage w"}
    project.run("--until", "stage")
    with h5py.File(tmp_path / "results" / "staged" / "w.h5") as file:
        assert file["operands/samples"][0, 0] == 2
    assert planned(project, "--until", "stage") == set()
