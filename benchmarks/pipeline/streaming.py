"""The time of streaming beside that of the slowest of its parts.

    python -m benchmarks.pipeline.streaming --json streaming.json

Beams of an array whose operands and result are ten times as large as the device memory that is
allowed. In turn, several times: the parts alone, with the same code over the same data (reading the
staged file, copies to the device and back, both ways at once, computing, writing the result), and
the stream as a job does it, file and final sync in it. Before that all of it once, thrown away, the
stream in a process of its own, with its memory recorded: a virtual machine's memory is slow when
it is touched for the first time. At the end the bytes of the result written to a plain file, by one
thread and by four: what the file's medium allows. Prints a line for each and writes all as JSON,
with medians. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from argand import PRECISIONS, Device
from argand.device import resolve

from benchmarks.pipeline.streaming_parts import parts_alone, plain_write, precision_of
from workflow.preflight.loading import load_study
from workflow.steps.run_results import blank_result
from workflow.steps.streaming import limited_device_memory, memory_for, stream_result
from workflow.storage.datasets import create
from workflow.storage.memory import peak_bytes
from workflow.storage.runs import write_run
from workflow.storage.slabs import SlabWriter
from workflow.storage.staged import open_staged
from workflow.versions import timestamp, versions
from workflow.workloads.base import Workload

POLARIZATIONS, ANTENNAS = 2, 96


def workload_of(
    memory: str, times: float, beams: int, samples: int, precision: str, **more: Any
) -> Workload:
    """Return beams of `ANTENNAS` antennas, ``times`` as large as their device memory.

    Operands and result, complex64, are counted; ``samples`` are those of a channel, and channels
    are as many as it takes.
    """
    case = {
        "kind": "beamforming", "channels": 1, "polarizations": POLARIZATIONS, "beams": beams,
        "antennas": ANTENNAS, "samples": samples, "precisions": [precision],
        "device_memory": memory, **more,
    }  # fmt: skip
    allowed = load_study({"workloads": {"beams": case}}).workload("beams").case
    channel = POLARIZATIONS * (beams + ANTENNAS) * samples * 8
    case["channels"] = max(1, round(times * allowed.device_memory_bytes() / channel))
    return load_study({"workloads": {"beams": case}}).workload("beams")


def write_operands(path: Path, case: Any) -> None:
    """Write a staged file; one random channel stands for all, so that drawing takes no time."""
    rng, channels = np.random.default_rng(1), case.channels
    parts = rng.standard_normal((1, POLARIZATIONS, ANTENNAS, case.samples, 2), dtype=np.float32)
    channel = parts.view(np.complex64)[..., 0]
    weights = np.exp(2j * np.pi * rng.random((channels, POLARIZATIONS, case.beams, ANTENNAS)))
    axes = ("frequency", "polarization")
    about = {"workload": "beams", "kind": "beamforming", "attributes": "{}"}
    with create(path, "staged", about) as file:
        group = file.create_group("operands")
        for name, shape in (
            ("weights", weights.shape),
            ("samples", (channels, *channel.shape[1:])),
        ):
            with SlabWriter(group, name, shape, np.complex64, 0, 1) as writer:
                for index in range(channels):
                    one = weights[index : index + 1].astype(np.complex64)
                    writer.write(index, one if name == "weights" else channel)
                writer.finish()
            last = ("beam", "antenna") if name == "weights" else ("antenna", "time")
            group[name].attrs["axes"] = [*axes, *last]
            group[name].attrs["units"] = ""
        file.create_group("coordinates")


def stream(workload: Workload, staged: Path, run: Path, device: Device) -> dict[str, Any]:
    """Return the whole, as a job does it; seconds from the first chunk read to the file synced."""
    said: list[str] = []
    log = logging.getLogger("benchmark")
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    log.setLevel("INFO")
    with (
        open_staged(staged, workload.split_axes) as file,
        limited_device_memory(workload, device),
    ):
        one = workload.argand(file.outline, precision_of(workload), device)
        blank = blank_result(workload, one, device)
        with write_run(run, "beams", {}) as writer:
            writer.add(blank)
            memory = memory_for(workload, device)
            result, busy = stream_result(workload, one, file, blank, writer, device, memory, log)
            closing = time.perf_counter()
        closing = time.perf_counter() - closing
    return {
        "seconds": busy.elapsed + closing,
        "job_seconds": 1e-6 * (result.end_to_end_us or 0) + closing,
        "read": busy.read, "computed": busy.computed, "written": busy.written + closing,
        "chunks": busy.chunks, "host_peak_mib": peak_bytes() / 2**20,
        "device_peak_mib": device_mib(device), "said": said,
    }  # fmt: skip


def device_mib(device: Device) -> float | None:
    """Return bytes of the device's memory in CuPy's pool, which gives them back only when asked."""
    if device.backend == "cpu":
        return None
    import cupy

    return float(cupy.get_default_memory_pool().total_bytes()) / 2**20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", default="1 GiB", help="of the device that is allowed")
    parser.add_argument("--times", type=float, default=10, help="as large are the data")
    parser.add_argument("--beams", type=int, default=64, help="96 antennas are added up to so many")
    parser.add_argument("--samples", type=int, default=16384, help="time samples of a channel")
    parser.add_argument("--precision", default="3xtf32", choices=list(PRECISIONS))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--stream", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    device = resolve("auto")
    workload = workload_of(
        options.memory, options.times, options.beams, options.samples, options.precision
    )
    if options.stream:
        print(json.dumps(stream(workload, options.stream[0], options.stream[1], device)))
        return
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        report = measure(workload, folder, device, options.repeats)
    finally:
        shutil.rmtree(folder)
    report |= {
        "memory": options.memory, "beams": options.beams, "precision": options.precision,
        "device": device.name, "folder": str(options.folder), "versions": versions(),
        "timestamp": timestamp(),
    }  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    say(report)


def say(report: Mapping[str, Any]) -> None:
    """Print a report, for a person."""
    size = report["data_mib"] / 1024
    for row in report["runs"]:
        alone = ", ".join(f"{name} {value:.2f} s" for name, value in row["alone"].items())
        print(
            f"{size:.3g} GiB: {row['stream']['seconds']:.2f} s; alone {alone}; "
            f"{row['of_slowest']:.3f} of the rate of the slowest ({row['slowest']}), "
            f"{row['of_slowest_but_write']:.3f} of the slowest but writing"
        )
    of, others = (100 * report["median"][key] for key in report["median"])
    print(f"median: {of:.1f} % of the slowest, {others:.1f} % of the slowest but writing")
    plain = ", ".join(f"{n} threads {s:.2f} s" for n, s in report["plain_write"].items())
    print(f"the result's bytes to a plain file: {plain}")
    own = report["own_process"]
    print(f"a process of its own: host peak {own['host_peak_mib']:.0f} MiB, {own['said']}")


def measure(workload: Workload, folder: Path, device: Device, repeats: int) -> dict[str, Any]:
    """Return the parts and the stream, so many times in turn after one that does not count."""
    staged, run = folder / "staged.h5", folder / "run.h5"
    write_operands(staged, workload.case)
    rows = []
    parts_alone(workload, staged, run, device)
    run.unlink()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pipeline.streaming", *sys.argv[1:],
         "--stream", str(staged), str(run)],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    size = run.stat().st_size
    run.unlink()
    for _ in range(repeats):
        alone = parts_alone(workload, staged, run, device)
        run.unlink()
        streamed = stream(workload, staged, run, device)
        run.unlink()
        rows.append({"stream": streamed, "alone": alone, **_fractions(alone, streamed["seconds"])})
    plain = {str(threads): plain_write(run, size, threads) for threads in (1, 4)}
    medians = {
        key: statistics.median(row[key] for row in rows)
        for key in ("of_slowest", "of_slowest_but_write")
    }
    return {
        "runs": rows, "median": medians, "plain_write": plain,
        "own_process": json.loads(done.stdout.splitlines()[-1]),
        "data_mib": (size + staged.stat().st_size) / 2**20,
    }  # fmt: skip


def _fractions(alone: dict[str, float], streamed: float) -> dict[str, Any]:
    """Return the slowest part and its share of the stream's time, also without writing."""
    slowest = max(alone, key=lambda name: alone[name])
    others = max(seconds for name, seconds in alone.items() if name != "write")
    return {
        "slowest": slowest, "of_slowest": alone[slowest] / streamed,
        "of_slowest_but_write": others / streamed,
    }  # fmt: skip


if __name__ == "__main__":
    main()
