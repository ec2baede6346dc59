"""After a fault the same command completes, and the tables are those of an undisturbed run."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import h5py
import numpy as np
import pytest
from shared_runs import TABLES, failed, made_once, measured_as, session_folder
from slurm_project import Project

from tests.covers import EXHAUSTIVE
from tests.workflow.whole_files import read_staged
from workflow.storage.run_folder import hold_folder

pytestmark = pytest.mark.slow

STUDY = """
device: cpu
precisions: [fp64, fp32]
baselines: none
workloads:
  product: {kind: gemm, input: {file: in.h5, a: a, b: b}}
  spectrum: {kind: dft, length: 12, batch: 3}
"""
TARGETS = () if EXHAUSTIVE else (TABLES,)
STAGED, RECORDS = Path("results/staged/product.h5"), Path("results/records/product.jsonl")


def project_in(root: Path, folder: Path) -> Project:
    return Project(root, folder, dict(os.environ), STUDY)


def ran(project: Project, status: int = 0) -> str:
    """Snakemake's words on a run to the tables."""
    return project.run(*TARGETS, status=status)


@pytest.fixture(scope="module")
def finished(root: Path, tmp_path_factory: pytest.TempPathFactory, tiny_run: Path) -> Project:
    def make(folder: Path) -> None:
        measured_as(folder, tiny_run)
        rng = np.random.default_rng(1)
        with h5py.File(folder / "in.h5", "w") as file:
            for name in ("a", "b"):  # 1.4 MB each
                file[name] = rng.standard_normal((300, 300)) + 1j * rng.standard_normal((300, 300))
        ran(project_in(root, folder))

    return project_in(root, made_once(session_folder(tmp_path_factory) / "with-input", make))


@contextlib.contextmanager
def truncated(folder: Path) -> Iterator[None]:
    """The staged file ends early."""
    os.truncate(folder / STAGED, (folder / STAGED).stat().st_size - 200)
    yield
    (folder / STAGED).unlink()


@contextlib.contextmanager
def flipped(folder: Path) -> Iterator[None]:
    """One bit of the staged data differs."""
    data = bytearray((folder / STAGED).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / STAGED).write_bytes(data)
    yield
    (folder / STAGED).unlink()


@contextlib.contextmanager
def written_by_another(folder: Path) -> Iterator[None]:
    """The input is open for writing while it should be staged."""
    (folder / STAGED).unlink()
    with h5py.File(folder / "in.h5", "r+"):
        yield


@contextlib.contextmanager
def of_another_run(folder: Path) -> Iterator[None]:
    """Another run has the folder."""
    (folder / STAGED).unlink()
    with hold_folder(folder / "results"):
        yield


@contextlib.contextmanager
def full(folder: Path) -> Iterator[None]:
    """The disk has less room than the study takes."""
    (folder / STAGED).unlink()
    free = shutil.disk_usage(folder).free
    (folder / "filler").write_bytes(bytes(free - (1 << 20)))
    yield
    (folder / "filler").unlink()


FAULTS: dict[str, tuple[Callable[[Path], AbstractContextManager[None]], str]] = {
    "truncated": (truncated, "staged/product.h5: missing, truncated or damaged"),
    "flipped": (flipped, "staged/product.h5: missing, truncated or damaged"),
    "input": (written_by_another, "another program is writing"),
    "two runs": (of_another_run, f"process {os.getpid()}"),
    "full disk": (full, " of disk in "),
}


SHORT = ("truncated",)
"""The damage to a staged file that the short run tries; its other tests see the further kinds."""


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty one; for the full disk a small file system."""
    if "full disk" not in request.node.name:
        yield tmp_path
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a tmpfs")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@pytest.mark.parametrize("fault", [name for name in FAULTS if EXHAUSTIVE or name in SHORT])
def test_the_same_command_completes_with_equal_tables(
    fault: str, root: Path, folder: Path, finished: Project
) -> None:
    shutil.copytree(finished.folder, folder, dirs_exist_ok=True)
    project = project_in(root, folder)
    shutil.rmtree(project.results / "tables")
    (folder / RECORDS).unlink()  # so that all of the workload has to be done again
    broken, message = FAULTS[fault]
    with broken(folder):
        assert message in ran(project, status=1)
        begun = fault in ("truncated", "flipped")  # else no job begins, and nothing is written
        assert (folder / TABLES).exists() is begun
        assert not begun or failed(folder / TABLES) == ["product"]
        assert not list(project.results.rglob("*.part"))
    ran(project)
    assert project.rows() == finished.rows()


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Nobody may write the file: by its mode, and for root by a mount of it on itself."""
    path.chmod(0o444)
    if os.geteuid():
        yield
        return
    if subprocess.run(["mount", "--bind", path, path], capture_output=True, check=False).returncode:
        pytest.skip("a root that may not mount may write every file")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", path], check=True)
        with pytest.raises(OSError, match="Read-only"):
            path.open("r+b")
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def test_a_read_only_input_is_staged(root: Path, tmp_path: Path, finished: Project) -> None:
    shutil.copytree(finished.folder, tmp_path, dirs_exist_ok=True)
    project, given = project_in(root, tmp_path), tmp_path / "in.h5"
    (tmp_path / STAGED).unlink()
    before = given.read_bytes()
    with read_only(given):
        project.run(str(STAGED))
    assert given.read_bytes() == before
    found, expected = (read_staged(folder / STAGED) for folder in (tmp_path, finished.folder))
    for name, operand in expected.operands.items():
        np.testing.assert_array_equal(found.operands[name], operand)
