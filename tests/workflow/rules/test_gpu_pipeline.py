"""The workflow on a machine with several GPUs, which a stand-in puts in the place of the driver.

Every process of the run imports ``sitecustomize``, in which this machine's list of GPUs and CUDA's
answer are replaced; all the rest is the product, and what a GPU would compute the CPU does.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fake_gpus import MACHINE
from rule_jobs import killed_run
from shared_runs import QUICK, TABLES
from snakemake_forks import run_snakemake

from tests.covers import EXHAUSTIVE

pytestmark = pytest.mark.slow

STUDY = """
precisions: [fp64, fp32]
grade: true
workloads:
  product: {kind: gemm, m: 8, n: 9, k: [10, 11, 12]}
"""
LOST = """
from pathlib import Path
from workflow.steps import execute
whole = execute.execute

class CUDARuntimeError(RuntimeError):
    __module__ = "cupy_backends.cuda.api.runtime"

def lost(workload, *rest):
    if workload.name == "product-k11" and Path("lost").exists():
        Path("lost").unlink()
        raise CUDARuntimeError("cudaErrorDevicesUnavailable")
    return whole(workload, *rest)

execute.execute = lost
"""
"""A card that falls off the bus in one job, once: test_gpu_lost has real ones that fail."""
TIMERS = """
import threading
threading.Timer.start = lambda self: open("timers", "a").close()
"""
"""Says whether Snakemake has itself woken up a while later."""
PRODUCTS = tuple(f"results/products/product-k{k}.h5" for k in (11, 12))


class Machine:
    """A folder to run the study in, on three GPUs that are not there."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        (folder / "sitecustomize.py").write_text(MACHINE + QUICK)
        (folder / "study.yaml").write_text(STUDY)

    def flags(self, *flags: str) -> list[str]:
        """Flags of Snakemake on eight cores."""
        return [
            "--snakefile", str(self.root / "Snakefile"), "--cores", "8",
            "--config", "study=study.yaml", "out=results", "--directory", ".", *flags,
        ]  # fmt: skip

    def environ(self, **more: str) -> dict[str, str]:
        given = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID")
        inherited = {name: value for name, value in os.environ.items() if name not in given}
        path = [*map(str, (self.folder, self.root, self.root / "kernels"))]
        path += filter(None, [os.environ.get("PYTHONPATH")])  # packages may be there alone
        own = {"PYTHONPATH": os.pathsep.join(path), "ARGAND_LOCK_FOLDER": str(self.folder)}
        return inherited | own | more

    def run(self, *flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return run_snakemake(self.flags(*flags), self.folder, self.environ(**environ))

    def leases(self) -> list[dict[str, Any]]:
        """The lines of the lease log."""
        log = self.folder / "results/logs/gpu-leases.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def spans(self) -> list[tuple[str, str, str, str]]:
        """Job, device, when it was taken and when given back, for each line of the lease log."""
        lines = self.leases()
        ended = {line["pid"]: line["time"] for line in lines if line["event"] == "given back"}
        return [
            (line["job"], line["gpus"][0]["uuid"], line["time"], ended[line["pid"]])
            for line in lines
            if line["event"] == "taken"
        ]


def overlapping(spans: list[tuple[str, str, str, str]]) -> list[tuple[str, str]]:
    """The devices of each two spans that have a time in common."""
    return [
        (first[1], second[1])
        for first, second in itertools.combinations(spans, 2)
        if first[2] < second[3] and second[2] < first[3]
    ]


TWO_JOBS = tuple(f"results/runs/product-k{k}.h5" for k in (10, 11))
"""Targets that take a job on a GPU each."""


@pytest.fixture
def machine(root: Path, tmp_path: Path) -> Machine:
    return Machine(root, tmp_path)


def test_gpu_jobs_run_together_each_with_its_own_device(machine: Machine) -> None:
    """Snakemake looks for jobs only when one has ended."""
    (machine.folder / "sitecustomize.py").write_text(MACHINE + QUICK + TIMERS)
    done = machine.run(TABLES)
    assert done.returncode == 0, done.stderr
    assert not (machine.folder / "timers").exists()
    spans = machine.spans()
    names = ["grade", *(f"run product-k{k}" for k in (10, 11, 12))]
    assert sorted(span[0] for span in spans) == names
    together = overlapping(spans)
    assert together, "nothing ran at the same time"
    assert all(first != second for first, second in together)
    log = (machine.folder / "results/logs/run/product-k10.log").read_text()
    assert ": taken GPU " in log
    assert ": given back; the job had " in log
    assert log.splitlines()[-1].startswith("2 precisions, ")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("flags", "environ"),
    [(("--resources", "gpu=1"), {}), ((), {"CUDA_VISIBLE_DEVICES": "2"})],
    ids=["by flag", "by CUDA_VISIBLE_DEVICES"],
)
def test_on_one_gpu_they_run_one_after_another(
    machine: Machine, flags: tuple[str, ...], environ: dict[str, str]
) -> None:
    done = machine.run(*TWO_JOBS, *flags, **environ)
    assert done.returncode == 0, done.stderr
    spans = machine.spans()
    assert len(spans) == 2
    assert not overlapping(spans)
    assert "waiting for" not in done.stderr, "the cap keeps them apart, not the lease"
    if environ:
        assert {span[1] for span in spans} == {"GPU-2000"}


@pytest.mark.exhaustive
def test_a_run_that_is_killed_holds_no_device(machine: Machine) -> None:
    killed = killed_run(
        machine.folder, lambda: machine.run(*TWO_JOBS), lambda: len(machine.leases()) == 2
    )
    assert killed.returncode == -signal.SIGKILL
    assert [line["event"] for line in machine.leases()] == ["taken", "taken"]
    done = machine.run(*TWO_JOBS)
    assert done.returncode == 0, done.stderr
    again = [line for line in machine.leases()[2:] if line["event"] == "taken"]
    assert {line["gpus"][0]["uuid"] for line in again} == {"GPU-0000", "GPU-1000"}
    assert all(line["waited_s"] < 5 for line in again)


def test_a_device_that_is_lost_fails_its_job_alone(machine: Machine) -> None:
    (machine.folder / "sitecustomize.py").write_text(MACHINE + QUICK + LOST)
    (machine.folder / "lost").touch()
    done = machine.run(*PRODUCTS)
    assert done.returncode == 1
    named = (
        r"DeviceError: GPU (\d) \(GPU-(?:\1)000, fake\) of \S+ failed: CUDARuntimeError: cudaError"
    )
    assert re.search(rf"\] +run +product-k11 .* FAILED +{named}", done.stderr), done.stderr
    given_back = {line["job"] for line in machine.leases() if line["event"] == "given back"}
    assert given_back == {"run product-k11", "run product-k12"}
    products = machine.folder / "results" / "products"
    assert [path.name for path in products.iterdir()] == ["product-k12.h5"]
    if EXHAUSTIVE:  # `test_recovery` sees it of a staged file
        done = machine.run(*PRODUCTS)
        assert done.returncode == 0, done.stderr
        assert (products / "product-k11.h5").exists()


def test_what_the_machine_does_not_have_is_a_message_before_any_job(machine: Machine) -> None:
    done = machine.run(CUDA_VISIBLE_DEVICES="7")
    assert done.returncode != 0
    assert "CUDA_VISIBLE_DEVICES='7' names device 7; the machine has 3: GPU 0" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (machine.folder / "results").exists()
