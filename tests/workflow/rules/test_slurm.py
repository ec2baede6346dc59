"""The workflow through a real Slurm, of two nodes with two GPUs each that are not there.

Every process of a run imports ``sitecustomize``, in which CUDA's answer is the CPU; all the rest is
the product: the profile, what jobs ask Slurm for, and that they use what it gave.
"""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import mini_slurm
import pytest
from mini_slurm import NODES, MiniSlurm, wait_for
from shared_runs import QUICK, TABLES, failed, measured_as, repeatable
from slurm_project import ASK_OFTEN, WHY_NOT, Project

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]

ONE = """
precisions: [fp64, fp32]
grade: true
workloads:
  product: {kind: gemm, m: 8, n: 9, k: 10}
"""
NAMES = "of $1 & $(touch ran) `touch ran`.yaml", "results $USER"
"""Names of the study and its results, which the shell of sbatch must not run."""
TABLE = TABLES.removeprefix("results/")
TWO = f"{ONE}  spectrum: {{kind: dft, length: 12, batch: 3, precision: fp64}}\n"
MACHINE = (
    QUICK
    + ASK_OFTEN
    + """
import json, os, sys, time
from pathlib import Path
from argand.device import cpu
from workflow.jobs import job_device

def held():
    try:
        return Path("hold").read_text() in ("", os.environ.get("SLURM_JOB_ID"))
    except FileNotFoundError:
        return False

def resolve(name):
    if name == "cuda":
        names = ("CUDA_VISIBLE_DEVICES", "SLURMD_NODENAME", "SLURM_JOB_ID")
        line = {name: os.environ.get(name) for name in names} | {"from": time.time()}
        time.sleep(3)  # so that jobs that may run together do
        while ".run." in sys.argv[0] and held():
            time.sleep(0.1)
        with open("seen.jsonl", "a") as file:
            file.write(json.dumps(line | {"to": time.time()}) + "\\n")
    return cpu()

job_device.resolve = resolve
"""
)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniSlurm]:
    with mini_slurm.running(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def expected(tiny_run: Path) -> list[dict[str, str]]:
    """The rows of an undisturbed run on this machine of the same workloads.

    A job of Slurm has one core, which is in the device's name; they are too small for more.
    """
    with (tiny_run / TABLES).open() as file:
        rows = repeatable(csv.DictReader(file))
    for row in rows:
        row["device"] = re.sub(r"\d+ cores", "1 cores", row["device"])
    return [row for row in rows if row["precision"] in ("fp64", "fp32")]


@pytest.fixture
def expected_one(expected: list[dict[str, str]]) -> list[dict[str, str]]:
    return [row for row in expected if row["workload"] == "product"]


@pytest.fixture
def project(root: Path, tmp_path: Path, slurm: MiniSlurm) -> Iterator[Project]:
    """A project of one workload and odd names, on a cluster that is whole again afterwards."""
    folder = tmp_path / "night $HOME"
    folder.mkdir()
    project = Project(root, folder, slurm.environ, ONE, MACHINE, NAMES)
    yield project
    project.end()
    slurm.restore()


def held_run(
    project: Project, slurm: MiniSlurm, measured: Path
) -> tuple[subprocess.Popen[bytes], str]:
    """Start the study and stop in the middle of a run job: Snakemake, and the job's number."""
    measured_as(project.folder, measured, NAMES[1])
    process = project.submit(project.target(TABLE))
    wait_for("operands are staged", lambda: list(project.results.glob("staged/*.h5")))
    (project.folder / "hold").touch()
    wait_for(
        "a run job is there", lambda: slurm.jobs("R", "rule_run") and "run" in _takers(project)
    )
    return process, slurm.jobs("R", "rule_run")[0]


def _takers(project: Project) -> list[str]:
    """The rule of every job that took a device."""
    return [line["job"].split()[0] for line in project.leases() if line["event"] == "taken"]


def test_gpu_jobs_run_on_both_nodes_and_one_that_is_cancelled_fails_alone(
    project: Project, slurm: MiniSlurm, expected: list[dict[str, str]], tiny_run: Path
) -> None:
    """Two jobs are held until both run: Slurm gives the second to the node with less to do.

    One is cancelled; its job is then done, with the other way to ask for a GPU. Jobs before
    and after these run here; the test of a lost node has Slurm run them.
    """
    project.write(TWO)
    measured_as(project.folder, tiny_run, NAMES[1])
    project.run(*(project.target(f"staged/{name}.h5") for name in ("product", "spectrum")))
    (project.folder / "hold").touch()
    process = project.submit(project.target(TABLE))
    wait_for("two run jobs have devices", lambda: _takers(project).count("run") == 2)
    jobs = slurm.jobs("R", "rule_run")
    nodes = {slurm.node_of(job) for job in jobs}
    slurm.call("scancel", jobs[0])
    (project.folder / "hold").unlink()
    said = project.finish(process, status=1)
    assert said.count(" FAILED ") == 1
    assert " FAILED  TerminatedError: the job was asked to end (SIGTERM)" in said
    (lost,) = failed(project.results / "tables" / "performance.csv")
    gres = ("--set-resources", "run:gpu=0", "run:gres=gpu:1")
    run = project.submit(project.target(f"runs/{lost}.h5"), *gres)
    assert "FAILED" not in project.finish(run)
    project.run(project.target(TABLE))
    assert project.rows() == expected
    seen = project.seen()
    assert len(seen) == 2, seen
    assert nodes | {one["SLURMD_NODENAME"] for one in seen} == set(NODES)
    for one in seen:
        assert one["CUDA_VISIBLE_DEVICES"] in ("0", "1"), "one device, of Slurm's choice"
        for other in seen:
            together = one["from"] < other["to"] and other["from"] < one["to"]
            same = [one[key] == other[key] for key in ("SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES")]
            assert one is other or not (together and all(same)), (one, other)
    given = {line["given_by"] for line in project.leases()}
    assert given == {f"Slurm job {one['SLURM_JOB_ID']}" for one in seen} | {f"Slurm job {jobs[0]}"}
    assert not list(project.results.rglob("*.part"))
    assert not list(project.folder.rglob("ran"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("lost", ["daemon", "node"])
def test_a_node_that_is_lost_in_mid_job(
    project: Project,
    slurm: MiniSlurm,
    expected_one: list[dict[str, str]],
    lost: str,
    tiny_run: Path,
) -> None:
    """Slurm does the job again on the other node; where only the daemon died, beside the first."""
    process, job = held_run(project, slurm, tiny_run)
    node = slurm.node_of(job)
    (slurm.kill_daemon if lost == "daemon" else slurm.kill_node)(node)
    wait_for(
        "Slurm starts the job on the other node",
        lambda: slurm.jobs("R", "rule_run") and slurm.node_of(job) not in ("", node),
        120,
    )
    wait_for("it has begun again", lambda: _takers(project).count("run") == 2)
    (project.folder / "hold").unlink()
    project.finish(process)
    assert project.rows() == expected_one
    ran = [one["SLURMD_NODENAME"] for one in project.seen() if one["SLURM_JOB_ID"] == job]
    assert sorted(ran) == sorted(NODES if lost == "daemon" else set(NODES) - {node})


@pytest.mark.exhaustive
def test_a_job_of_a_killed_snakemake_puts_nothing_into_the_next_ones_results(
    project: Project, slurm: MiniSlurm, expected_one: list[dict[str, str]], tiny_run: Path
) -> None:
    """Kill -9 of Snakemake; its job outlasts the same command, and is then ended by our check."""
    project.write(f"keep_runs: true{ONE}")
    process, job = held_run(project, slurm, tiny_run)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (project.folder / "hold").write_text(job)
    project.finish(project.submit(project.target(TABLE)))
    assert project.rows() == expected_one
    run = project.results / "runs" / "product.h5"
    written = run.stat().st_mtime_ns
    assert slurm.jobs("R") == [job], "it goes on"
    (project.folder / "hold").unlink()
    wait_for("the job of the first run has ended", lambda: job not in slurm.jobs())
    assert run.stat().st_mtime_ns == written, "neither replaced nor removed"
    assert slurm.call("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip() == "FAILED"
    assert project.rows() == expected_one
    assert not list(project.results.rglob("*.part"))
