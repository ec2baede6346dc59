"""The host memory that a job takes before its data: ``python -m benchmarks.pipeline.job_memory``.

A small workload of every kind, at all precisions and with all peers, is staged, computed and
verified, each step in a process of its own, on the CPU and, where one answers, on a GPU, the kinds
side by side. It prints the most memory that the process had, in MiB: its libraries, CUDA's,
compiled kernels and what they keep. `workflow.preflight.needs` asks for more than that.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from argand.device import devices, resolve
from argand.runtime.measuring.ceilings import Ceilings

from workflow.preflight.loading import load_study
from workflow.steps.execute import execute
from workflow.steps.staging import stage
from workflow.steps.verification import verify
from workflow.storage.memory import peak_bytes
from workflow.versions import timestamp, versions
from workflow.workloads import KINDS, Workload

STEPS = ["stage", "cpu", "cuda", "verify"]
"""Steps in their order; ``cpu`` and ``cuda`` are the run step."""
LOG = logging.getLogger("argand.job_memory")


def workload_of(kind: str) -> Workload:
    """Return a workload of some megabytes, at all precisions and with all peers."""
    case = {"kind": kind, **KINDS[kind].small, **KINDS[kind].common}
    return load_study({"workloads": {"w": case}}).workload("w")


def run_step(step: str, kind: str, folder: Path) -> int:
    """Do one of `STEPS` and return the most bytes that it took."""
    workload, staged = workload_of(kind), folder / f"{kind}-staged.h5"
    if step == "stage":
        stage(workload, [], staged, LOG)
    elif step == "verify":
        verify(workload, staged, folder / f"{kind}-cpu.h5", Ceilings("another", 10.0, {}), LOG)
    else:
        execute(workload, staged, folder / f"{kind}-{step}.h5", resolve(step), LOG)
    return peak_bytes()


def measure(kind: str, steps: Sequence[str]) -> dict[str, float]:
    """Return the MiB that each of the steps took at most, each in a process of its own."""
    # Every step needs what was staged, and verification what the CPU computed.
    needed = {"stage", *steps, *(["cpu"] if "verify" in steps else [])}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for step in filter(needed.__contains__, STEPS):
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.pipeline.job_memory", "--step", step, kind,
                 folder],
                stdout=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
            found[step] = int(done.stdout.splitlines()[-1]) / 2**20
    return {step: found[step] for step in steps}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=sorted(KINDS), choices=sorted(KINDS))
    parser.add_argument("--steps", nargs="+", default=STEPS, choices=STEPS, help="to measure")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="kinds side by side")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step, kind, where = options.step
        print(run_step(step, kind, Path(where)))
        return
    backends = {device.backend for device in devices()}
    steps = [step for step in STEPS if step in options.steps and step not in {"cuda"} - backends]
    found: dict[str, dict[str, float]] = {}
    with ThreadPoolExecutor(options.at_once) as pool:
        running = {pool.submit(measure, kind, steps): kind for kind in options.kinds}
        for ended in as_completed(running):
            kind = running[ended]
            found[kind] = ended.result()
            listed = (f"{step} {mib:.0f} MiB" for step, mib in found[kind].items())
            print(f"{kind}: {', '.join(listed)}", flush=True)
            if options.json:
                write(options.json, dict(sorted(found.items())))


def write(path: Path, found: Mapping[str, Mapping[str, float]]) -> None:
    """Write the measurements so far, with the device and versions."""
    report = {
        "host_peak_mib": found, "device": devices()[-1].name, "versions": versions(),
        "timestamp": timestamp(),
    }  # fmt: skip
    path.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
