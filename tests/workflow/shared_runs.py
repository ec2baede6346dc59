"""Runs of small studies that tests share: made once a session, and what spares others a measuring.

Tests that only read a shared run get its folder, those that change it a copy of their own.
"""

from __future__ import annotations

import csv
import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
from snakemake_forks import run_snakemake

from workflow import records

TINY = """
device: cpu
precisions: [fp64, fp32, 3xtf32]
grade: true
workloads:
  product: {kind: gemm, m: 8, n: 9, k: 10}
  spectrum: {kind: dft, length: 12, batch: 3, precision: fp64}
"""
TABLES = "results/tables/performance.csv"
"""A target of Snakemake's that needs every step but those of products and figures."""
MEASURED = ("results/records/growth.json",)
"""Files that a run measures of the device, whatever its workloads are."""
QUICK = """
import sys
if ".run." in " ".join(sys.orig_argv):
    from argand.runtime.measuring import ceilings
    from workflow.measuring import samplers, timing
    timing.REPEATS, timing.SECONDS, samplers._MAX_BATCH = 1, 1e-9, 1
    formats = ceilings.operand_formats()
    ceilings.measure_ceilings = lambda device: ceilings.Ceilings(
        device.name, 10.0, dict.fromkeys(formats, 0.1)
    )
elif ".grade." in " ".join(sys.orig_argv):
    from workflow.accuracy import grading
    grading.K_VALUES = grading.K_VALUES[:2]
"""
"""For ``sitecustomize``, of all jobs that tests start: what is measured takes no time. Times are
then of a few calls."""


def failed(table: Path) -> list[str]:
    """The workloads that a performance table has no results of, because a run failed."""
    with table.open() as file:
        rows = list(csv.DictReader(file))
    return list(dict.fromkeys(row["workload"] for row in rows if row["verdict"] == "failed"))


def repeatable(rows: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """Rows of a table without the columns in which two runs of the same work may differ."""
    differ = (*records.TIMED, "timestamp")
    return [{key: value for key, value in row.items() if key not in differ} for row in rows]


def run_study(root: Path, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run the repository's Snakefile on ``study.yaml`` of a folder, on two cores.

    From the folder above: the names of study and results are relative to ``--directory``.
    """
    return run_snakemake(
        ["--snakefile", str(root / "Snakefile"), "--cores", "2", "--config", "study=study.yaml",
         "out=results", "--directory", folder.name, *flags], folder.parent,
    )  # fmt: skip


def finish_with_report(root: Path, folder: Path) -> None:
    """Run the study of a folder to its end, then make its report; both must succeed."""
    for flags in ((), ("--report", "results/report.html")):
        done = run_study(root, folder, *flags)
        assert done.returncode == 0, done.stdout + done.stderr


def session_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder that every worker of this session of tests sees."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, filled by ``make`` in the first worker that asks; others wait for it.

    Where ``make`` fails the next one that asks tries again, in an empty folder.
    """
    done = folder.with_name(f"{folder.name}.done")
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def measured_as(folder: Path, other: Path, results: str = "results") -> None:
    """Let a run in ``folder`` find what the run in ``other`` measured of the device."""
    for name in MEASURED:
        own = folder / results / Path(name).relative_to("results")
        own.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(other / name, own)
