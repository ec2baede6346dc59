"""Times of a study in shards on more and more GPUs of one host.

    python -m benchmarks.pipeline.scaling --shards 64

Beams of many channels in ``--shards`` shards, each a job of its own that Snakemake starts and that
leases a device: with all of the host's GPUs, then with one, from the same staged file, after a
shard on each of them that is thrown away (it compiles, and touches memory that a virtual machine is
slow to give for the first time). A row has the wall time of Snakemake and, by the lease log, from
the first lease to the last one given back, how long devices were held, and what passed between two
jobs of a device. Speed-up compares shards a second between the first and the last lease. A job has
as many threads with one GPU as with all. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from argand import PRECISIONS

from benchmarks.pipeline.streaming import ANTENNAS, POLARIZATIONS, write_operands
from workflow.jobs.gpu_devices import usable_gpus
from workflow.jobs.lease_log import Line, lease_log, leases, pairs, seconds
from workflow.preflight.loading import load_study
from workflow.preflight.needs import timing_threads
from workflow.study import Study
from workflow.versions import timestamp, versions

ROOT = Path(__file__).parents[2]
NAME = "beams"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--alone", type=int, help="shards that one GPU does; all if not given")
    parser.add_argument("--channels", type=int, default=1, help="of a shard")
    parser.add_argument("--beams", type=int, default=64)
    parser.add_argument("--samples", type=int, default=32768, help="time samples of a channel")
    parser.add_argument("--precisions", nargs="+", default=["3xtf32"], choices=list(PRECISIONS))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--leases", type=Path, help="where the lease log of all runs goes")
    options = parser.parse_args()
    gpus = usable_gpus()
    if len(gpus) < 2:
        sys.exit(f"at least two GPUs are needed, there are {len(gpus)}")
    case = {
        "kind": "beamforming", "channels": options.shards * options.channels,
        "polarizations": POLARIZATIONS, "beams": options.beams, "antennas": ANTENNAS,
        "samples": options.samples, "shards": options.shards,
    }  # fmt: skip
    content: dict[str, Any] = {
        "precisions": options.precisions, "baselines": "none", "keep_runs": True,
        "workloads": {NAME: case},
    }  # fmt: skip
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    report: dict[str, Any] = {
        "runs": [], "study": content, "devices": [gpu.name for gpu in gpus],
        "cores": os.cpu_count(), "versions": versions(), "timestamp": timestamp(),
    }  # fmt: skip
    try:
        for row in measure(content, folder, len(gpus), options.alone or options.shards):
            print(", ".join(f"{key} {_short(value)}" for key, value in row.items()), flush=True)
            report["runs"] = compared([row, *report["runs"]])
            if options.json:
                options.json.write_text(json.dumps(report, indent=2) + "\n")
            if options.leases:
                shutil.copy(folder / lease_log(), options.leases)
    finally:
        shutil.rmtree(folder)


def measure(
    content: Mapping[str, Any], folder: Path, gpus: int, alone: int
) -> Iterator[dict[str, Any]]:
    """Yield a row of the run with all GPUs, then one of the run with one."""
    study = load_study(content)
    (folder / "study.yaml").write_text(yaml.safe_dump(dict(content)))
    staged = folder / "results" / "staged" / f"{NAME}.h5"
    staged.parent.mkdir(parents=True)
    write_operands(staged, study.workload(NAME).case)
    threads = timing_threads(os.cpu_count() or 1, gpus)
    _run(study, folder, gpus, gpus, threads)
    yield _run(study, folder, gpus, len(study.shards(NAME)), threads)
    yield _run(study, folder, 1, alone, threads)


def compared(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows, all but the first with their gain over the first, which is of one GPU."""
    first, *others = runs
    gains = [run["shards_per_s"] / first["shards_per_s"] for run in others]
    return [first] + [
        {**run, "speedup": gain, "efficiency": gain * first["gpus"] / run["gpus"]}
        for run, gain in zip(others, gains, strict=True)
    ]


def _run(study: Study, folder: Path, gpus: int, shards: int, threads: int) -> dict[str, Any]:
    """Compute the first shards on ``gpus`` GPUs; their results are removed again."""
    log = folder / lease_log()
    before = len(leases(log))
    targets = [f"results/runs/{part}.h5" for part in study.parts(NAME)[:shards]]
    command = [
        sys.executable, "-m", "snakemake", *targets, "--snakefile", str(ROOT / "Snakefile"),
        "--directory", str(folder), "--cores", "all", "--resources", f"gpu={gpus}",
        "--set-threads", f"run={threads}",
        "--config", f"study={folder / 'study.yaml'}", "out=results",
    ]  # fmt: skip
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"Snakemake failed with {gpus} GPUs:\n{done.stderr[-3000:]}")
    shutil.rmtree(folder / "results" / "runs")
    return {"gpus": gpus, "shards": shards, "wall_s": seconds, **summary(leases(log)[before:])}


def summary(lines: Sequence[Line]) -> dict[str, Any]:
    """Return a run by its lease log: seconds, and the most memory of the host that a job had.

    Raises ValueError where two jobs had a device at the same time.
    """
    spans: dict[str, list[tuple[float, float]]] = {}
    for taken, back in pairs(lines):
        spans.setdefault(taken["gpus"][0]["uuid"], []).append((seconds(taken), seconds(back)))
    gaps = []
    for device, held in spans.items():
        held.sort()
        between = [after[0] - before[1] for before, after in pairwise(held)]
        if min(between, default=0) < 0:
            raise ValueError(f"two jobs had {device} at the same time")
        gaps += between
    jobs = [span for held in spans.values() for span in held]
    span = max(end for _, end in jobs) - min(start for start, _ in jobs)
    return {
        "devices": len(spans),
        "span_s": span,
        "shards_per_s": len(jobs) / span,
        "held_s": statistics.median(end - start for start, end in jobs),
        "between_s": statistics.median(gaps) if gaps else None,
        "busy": sum(end - start for start, end in jobs) / span / len(spans),
        "host_peak_mib": max(line.get("host_peak_bytes", 0) for line in lines) / 2**20,
    }


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
