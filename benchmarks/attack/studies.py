"""A small study that is run in a folder by Snakemake, disturbed or not, and what it leaves."""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from benchmarks.attack.isolation import end_group
from workflow.records import TIMED

STUDY = """
device: cpu
precisions: [fp64, fp32]
grade: true
baselines: none
keep_runs: true
workloads:
  product: {kind: gemm, precision: fp32, input: {file: in.h5, a: a, b: b}}
  beams: {kind: beamforming, precision: fp32, beams: 4, antennas: 5, samples: 12, shards: 2}
  likely: {kind: softmax, precision: fp64, input: {workload: beams}}
"""
_OF_FILES = (
    "timestamp",
    "file_time",
    "sha256",
    "source_sha256",
    "REFERENCE_LIST",
    "DIMENSION_LIST",
)
"""Names in HDF5 files whose values differ from run to run: checksums of times, places in a file."""
SECONDS = 240.0
"""More than a run of the study ever takes: beyond it, it hangs."""


class Run:
    """A Snakemake of the study in a folder, with all of its jobs in one process group."""

    def __init__(
        self, root: Path, folder: Path, *, before: Callable[[], None] | None = None,
        said: Path | None = None,
    ) -> None:  # fmt: skip
        self._said = (said or folder) / f"said-{time.monotonic_ns()}"
        command = [
            sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile"),
            "--config", "study=study.yaml", "out=results", "--directory", ".",
            "--cores", "2",
        ]  # fmt: skip
        paths = os.pathsep.join([str(root), str(root / "kernels")])
        with self._said.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env={**os.environ, "PYTHONPATH": paths}, preexec_fn=before,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    @property
    def said(self) -> str:
        """The output of the study so far."""
        return self._said.read_text(errors="replace")

    def finish(self) -> int:
        """Wait for its end: the exit status; one that hangs is killed and has that of a kill."""
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.returncode

    def kill(self) -> None:
        """Kill (-9) all of its processes."""
        end_group(self.process.pid)
        self.process.wait()


class Ground:
    """Shared by attempts: the repository, a folder, and an undisturbed run of the study in it."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.known: dict[str, Any] = {}
        """Values that attempts keep for later ones."""
        self.seconds = 0.0
        """Seconds of the undisturbed run."""

    @cached_property
    def finished(self) -> Path:
        """A folder in which the study has ended well. Raises RuntimeError where it does not."""
        folder = self.folder / "finished"
        folder.mkdir()
        prepare(folder)
        started = time.monotonic()
        run = Run(self.root, folder)
        if run.finish():
            raise RuntimeError(f"the study fails undisturbed: {run.said[-2000:]}")
        self.seconds = time.monotonic() - started
        return folder

    def copy(self, folder: Path) -> None:
        """Copy the finished study into a folder."""
        shutil.copytree(self.finished, folder, dirs_exist_ok=True, symlinks=True)


def prepare(folder: Path) -> None:
    """Write the study and its input, before any run."""
    (folder / "study.yaml").write_text(STUDY)
    rng = np.random.default_rng(1)
    with h5py.File(folder / "in.h5", "w") as file:
        for name in "ab":
            data = rng.standard_normal((40, 40)) + 1j * rng.standard_normal((40, 40))
            file.create_dataset(name, data=data, chunks=(10, 40))


def difference(folder: Path, other: Path) -> str:
    """Return how the tables or products of two folders differ, except in what a clock says."""
    for table in ("performance", "accuracy", "shards"):
        if rows_of(folder, table) != rows_of(other, table):
            return f"results/tables/{table}.csv differs"
    names = [
        sorted(p.name for p in (f / "results/products").rglob("*.h5")) for f in (folder, other)
    ]
    if names[0] != names[1]:
        return f"products {names[0]} instead of {names[1]}"
    for path in (other / "results" / "products").rglob("*.h5"):
        name = path.relative_to(other)
        if contents(folder / name) != contents(path):
            return f"{name} differs"
    return ""


def rows_of(folder: Path, table: str) -> list[dict[str, str]]:
    """Return a table without what a clock says; empty where it is not there."""
    path = folder / "results" / "tables" / f"{table}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [_without_clock(row) for row in csv.DictReader(file)]


def contents(path: Path) -> dict[str, Any]:
    """Return everything in an HDF5 file by name, but what a clock says; arrays as digests."""
    found: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        found[name] = {k: _plain(v) for k, v in _without_clock(item.attrs).items()}
        if isinstance(item, h5py.Dataset):
            found[f"{name} = "] = _plain(item[()])

    with h5py.File(path) as file:
        visit("", file)
        file.visititems(visit)
    return _without_clock(found)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, value.dtype.str, hashlib.sha256(value.tobytes()).hexdigest()
    return repr(value)


def _without_clock(row: Any) -> dict[str, Any]:
    """Return a table, attributes or names of a file without what times decide."""
    return {
        key: value
        for key, value in row.items()
        if not key.rpartition("/")[2].startswith((*TIMED, *_OF_FILES))
    }
