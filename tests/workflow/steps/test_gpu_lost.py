"""A GPU that fails in the middle of a job: a kernel that traps, or writes where nothing is.

CUDA then answers this process with the error for ever, whatever it is asked: as for a card that is
lost. Other processes keep their device.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from argand import Device
from slurm_project import Project

from workflow.preflight.loading import load_study
from workflow.storage.runs import open_run

pytestmark = pytest.mark.gpu

BROKEN = '''
"""The workload that is named doomed meets a kernel that fails, where a file says so."""
from pathlib import Path
from workflow.steps import execute, run_results

KERNELS = {
    "trap": 'extern "C" __global__ void fails() { asm volatile("trap;"); }',
    "bounds": 'extern "C" __global__ void fails() { *(volatile int*)64 = 1; }',
}
whole = execute.execute

def after(calls, function, kernel):
    """The function, which launches a kernel before the last of so many calls."""
    left = [calls]
    def called(*given):
        import cupy
        left[0] -= 1
        if left[0] == 0:
            cupy.RawModule(code=KERNELS[kernel]).get_function("fails")((1,), (1,), ())
        return function(*given)
    return called

def broken(workload, *rest):
    said = Path("fault")
    if workload.name == "doomed" and said.exists():
        import cupy
        kernel = said.read_text()
        said.unlink()
        run_results.download = after(2, run_results.download, kernel)  # the second precision's
        cupy.ascontiguousarray = after(6, cupy.ascontiguousarray, kernel)  # a chunk of a stream
    return whole(workload, *rest)

execute.execute = broken
'''
JOB = """
from pathlib import Path
from workflow.steps import execute
from workflow.jobs.job_device import job_device
from workflow.jobs.joblog import job_log
from workflow.steps.staging import stage
from workflow.study import workload_from_json

workload, staged = workload_from_json(Path("case.json").read_text()), Path("staged.h5")
with job_log("job.log") as log:
    if not staged.exists():
        stage(workload, [], staged, log)
    with job_device("cuda", 1, "run doomed", log) as device:
        execute.execute(workload, staged, Path("run.h5"), device, log)
"""
CASES: dict[str, dict[str, Any]] = {
    "product": {"kind": "gemm", "m": 300, "n": 200, "k": 100},
    "transform": {"kind": "dft", "length": 1009, "batch": 64},
    "rows": {"kind": "softmax", "rows": 64, "columns": 1000},
    "state": {"kind": "statevector", "circuit": {"name": "qft", "qubits": 10}},
    "stream": {
        "kind": "beamforming", "channels": 64, "beams": 16, "antennas": 32, "samples": 8192,
        "device_memory": "48 MiB",
    },
}  # fmt: skip
SAID = {
    "trap": r"cudaErrorLaunchFailure|cudaErrorIllegalInstruction|CUDA_ERROR_LAUNCH_FAILED",
    "bounds": r"cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS",
}
NAMED = r"GPU \d+ \(\S+, [^)]+\) of \S+ failed: CUDA\w+Error: "


def environ(folder: Path, root: Path) -> dict[str, str]:
    paths = os.pathsep.join(map(str, (folder, root, root / "kernels", *_inherited())))
    return {**os.environ, "PYTHONPATH": paths, "ARGAND_LOCK_FOLDER": str(folder)}


def _inherited() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


@pytest.mark.parametrize(
    ("case", "kernel"),
    [("product", "trap"), ("transform", "bounds"), ("rows", "bounds"), ("state", "trap"),
     ("stream", "trap"), ("stream", "bounds")],
)  # fmt: skip
def test_a_job_whose_gpu_fails_names_it_and_can_be_done_again(
    case: str, kernel: str, root: Path, gpu: Device, cp: Any, tmp_path: Path
) -> None:
    there = cp.arange(1000)
    content = {"precisions": ["fp32", "tf32"], "baselines": "none", "workloads": {}}
    study = load_study({**content, "workloads": {"doomed": CASES[case]}})
    (tmp_path / "case.json").write_text(study.case_json("doomed"))
    (tmp_path / "sitecustomize.py").write_text(BROKEN)

    def job() -> str:
        done = subprocess.run(
            [sys.executable, "-c", JOB], cwd=tmp_path, env=environ(tmp_path, root), text=True,
            capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        log = (tmp_path / "job.log").read_text()
        assert (tmp_path / "run.h5").exists() == (done.returncode == 0), log + done.stderr
        return log

    (tmp_path / "fault").write_text(kernel)
    last = job().splitlines()[-1]
    assert not (tmp_path / "fault").exists()
    assert re.match(rf"DeviceError: {NAMED}.*({SAID[kernel]})", last), last
    assert not list(tmp_path.glob("*.part"))
    assert int(there.sum()) == 499_500, "another process's device"
    log = job()
    leases = (tmp_path / "results" / "logs" / "gpu-leases.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in leases] == 2 * ["taken", "given back"]
    assert ("streamed" in log) == (case == "stream")
    with open_run(tmp_path / "run.h5") as run:
        assert [result.reason for result in run.results] == ["", ""]
        assert all(run.outline(result) is not None for result in run.results)


STUDY = """
device: cuda
precisions: [fp32, tf32]
baselines: none
workloads:
  doomed: {kind: gemm, m: 300, n: 200, k: 100}
  spectrum: {kind: dft, length: 127, batch: 50}
"""


@pytest.mark.skipif(not find_spec("snakemake"), reason="Snakemake is not installed")
def test_that_job_fails_alone_and_the_same_command_completes(root: Path, tmp_path: Path) -> None:
    projects = {}
    for name in ("broken", "undisturbed"):
        folder = tmp_path / name
        folder.mkdir()
        projects[name] = Project(root, folder, environ(tmp_path, root), STUDY, BROKEN)
    broken, undisturbed = projects.values()
    (broken.folder / "fault").write_text("trap")
    try:
        other = undisturbed.start("--cores", "4")
        said = broken.finish(broken.start("--cores", "4"), status=1)
        assert re.search(rf"\] +run +doomed .* FAILED .*{NAMED}", said), said
        assert (broken.results / "products" / "spectrum.h5").exists()
        assert not (broken.results / "products" / "doomed.h5").exists()
        broken.finish(broken.start("--cores", "4"))
        undisturbed.finish(other)
    finally:
        for project in projects.values():
            project.end()
    assert broken.rows() == undisturbed.rows()
