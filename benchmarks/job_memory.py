"""The host memory that a job takes before its data: ``python -m benchmarks.job_memory``.

A small workload of every kind, at all precisions and with all peers, is staged, computed and
verified, each step in a process of its own, on the CPU and, where one answers, on a GPU. Told is
the most memory that the process had, in MiB: its libraries, CUDA's, compiled kernels and what they
keep. `workflow.steps.needs` asks for more than that.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

from argand.ceilings import Ceilings
from argand.device import devices, resolve

from workflow.config.loading import load_study
from workflow.steps.execute import execute
from workflow.steps.staging import stage
from workflow.steps.verification import verify
from workflow.storage.memory import peak_bytes
from workflow.versions import timestamp, versions
from workflow.workloads.base import Workload

CASES = {
    "gemm": {"m": 512, "n": 512, "k": 512},
    "beamforming": {"channels": 2, "beams": 64, "antennas": 96, "samples": 1024},
    "dft": {"length": 1009, "batch": 256},
    "softmax": {"rows": 512, "columns": 1000},
    "statevector": {"circuit": {"name": "qft", "qubits": 12}},
}
LOG = logging.getLogger("argand.job_memory")


def workload_of(kind: str) -> Workload:
    """A small workload, at all precisions and with all peers."""
    return load_study({"workloads": {"w": {"kind": kind, **CASES[kind]}}}).workload("w")


def run_step(step: str, kind: str, folder: Path) -> int:
    """Do a step (``stage``, ``verify``, or where to compute); the bytes it took at most."""
    workload, staged = workload_of(kind), folder / f"{kind}-staged.h5"
    if step == "stage":
        stage(workload, [], staged, LOG)
    elif step == "verify":
        verify(workload, staged, folder / f"{kind}-cpu.h5", Ceilings("another", 10.0, {}), LOG)
    else:
        execute(workload, staged, folder / f"{kind}-{step}.h5", resolve(step), LOG)
    return peak_bytes()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step, kind, where = options.step
        print(run_step(step, kind, Path(where)))
        return
    backends = list(dict.fromkeys(device.backend for device in devices()))
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            for step in ("stage", *backends, "verify"):
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.job_memory", "--step", step, kind, folder],
                    stdout=subprocess.PIPE, text=True, check=True,
                )  # fmt: skip
                found.setdefault(kind, {})[step] = int(done.stdout.splitlines()[-1]) / 2**20
            line = ", ".join(f"{step} {mib:.0f}" for step, mib in found[kind].items())
            print(f"{kind}: {line} MiB", flush=True)
    report = {
        "host_peak_mib": found, "device": devices()[-1].name, "versions": versions(),
        "timestamp": timestamp(),
    }  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
