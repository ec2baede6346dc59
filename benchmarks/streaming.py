"""How near streaming comes to the slowest of its parts: ``python -m benchmarks.streaming``.

Beams of an array whose operands and result are ten times as large as the device memory that is
allowed. The stream is measured in a process of its own, as a job does it, file and final sync in
it; then its parts alone, with the same code over the same data: reading the staged file, copies to
the device and back (both ways at once), computing, and writing the result. Prints a line for each
and writes all as JSON. Nothing is asserted: read it.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from argand import PRECISIONS, Device
from argand.device import resolve

from workflow.steps.execute import blank_result
from workflow.steps.streaming import limited_device_memory, memory_for, plan_chunks, stream_result
from workflow.steps.transfer import transfer_to
from workflow.storage.datasets import create, write_run
from workflow.storage.slabs import SlabReader, SlabWriter
from workflow.storage.staged import open_staged
from workflow.study import load_study
from workflow.versions import timestamp, versions
from workflow.workloads.base import Workload

POLARIZATIONS, BEAMS, ANTENNAS = 2, 64, 96
CHANNEL = POLARIZATIONS * (BEAMS + ANTENNAS) * 8
"""Bytes of one time sample of a channel: in and out, complex64."""


def workload_of(memory: str, channels: int, samples: int, precision: str) -> Workload:
    """Beams of `ANTENNAS` antennas, held to a memory of the device."""
    case = {
        "kind": "beamforming", "channels": channels, "polarizations": POLARIZATIONS,
        "beams": BEAMS, "antennas": ANTENNAS, "samples": samples, "precisions": [precision],
        "device_memory": memory,
    }  # fmt: skip
    return load_study({"workloads": {"beams": case}}).workload("beams")


def write_operands(path: Path, channels: int, samples: int) -> None:
    """A staged file; one random channel stands for all, so that drawing takes no time."""
    rng = np.random.default_rng(1)
    parts = rng.standard_normal((1, POLARIZATIONS, ANTENNAS, samples, 2), dtype=np.float32)
    channel = parts.view(np.complex64)[..., 0]
    weights = np.exp(2j * np.pi * rng.random((channels, POLARIZATIONS, BEAMS, ANTENNAS)))
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
        file.create_group("coordinates")


def stream(workload: Workload, staged: Path, run: Path, device: Device) -> dict[str, Any]:
    """The whole, as a job does it; seconds from the first chunk read to the file synced."""
    said: list[str] = []
    log = logging.getLogger("benchmark")
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    log.setLevel("INFO")
    with (
        open_staged(staged, workload.splits) as file,
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
        "chunks": busy.chunks, "host_peak_mib": peak_mib(), "device_peak_mib": device_mib(device),
        "said": said,
    }  # fmt: skip


def precision_of(workload: Workload) -> Any:
    """The one precision of the workload."""
    return PRECISIONS[workload.case.precisions[0]]


def peak_mib() -> float:
    """The most memory that this process has had, without what it maps of files' caches."""
    with Path("/proc/self/status").open() as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def device_mib(device: Device) -> float | None:
    """What CuPy's pool holds of the device's memory, which it gives back only when asked."""
    if device.backend == "cpu":
        return None
    import cupy

    return float(cupy.get_default_memory_pool().total_bytes()) / 2**20


def parts_alone(
    workload: Workload, staged: Path, run: Path, device: Device, chunks: int
) -> dict[str, float]:
    """Seconds of each part by itself, over as many chunks of the same size."""
    found: dict[str, float] = {}
    with open_staged(staged, workload.splits) as file:
        one = workload.argand(file.outline, precision_of(workload), device)
        plan = plan_chunks(workload, file.outline, one, memory_for(workload, device))
        if plan.axis != "frequency":
            sys.exit(
                "three channels must fit into the memory: take fewer --samples, or more --memory"
            )
        transfer = transfer_to(device)
        names = list(file.outline.operands)
        readers = {name: SlabReader(file.dataset(name), file.part(name), 0) for name in names}
        slots = [_views(transfer, readers, plan.step) for _ in range(2)]
        starts = range(0, plan.length, plan.step)

        def read() -> None:
            for index, at in enumerate(starts):
                for name, into in slots[index % 2].items():
                    readers[name].read(at, into[: plan.length - at])

        found["read"] = seconds(read)
        inputs = slots[0]
        result = np.asarray(transfer.start(one.compute, inputs).wait()[0])
        if device.backend == "cuda":
            found["copy"] = _copies(inputs, result, plan.length / plan.step, transfer)
        found["compute"] = _compute(one.compute, inputs, device) * plan.length / plan.step
        blank = blank_result(workload, one, device)

        def write() -> None:
            shape = (plan.length, *result.shape[1:])
            with write_run(run, "beams", {}) as writer:
                writer.add(blank)
                with writer.slabs(blank, shape, result.dtype, 0, 1) as slabs:
                    for at in starts:
                        slabs.write(at, result[: plan.length - at])

        found["write"] = seconds(write)
        for reader in readers.values():
            reader.__exit__()
    return found


def _views(transfer: Any, readers: Mapping[str, SlabReader], step: int) -> dict[str, Any]:
    return {
        name: transfer.empty(int(np.prod(reader.shape(step))) * 8)
        .view(np.complex64)
        .reshape(reader.shape(step))
        for name, reader in readers.items()
    }


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _compute(compute: Any, inputs: Mapping[str, Any], device: Device) -> float:
    """Seconds of one chunk on the device, the median of ten."""
    if device.backend == "cpu":
        return float(np.median([seconds(lambda: compute(inputs)) for _ in range(3)]))
    import cupy
    from argand.gpu_timing import queued_seconds

    there = {name: cupy.asarray(data) for name, data in inputs.items()}
    compute(there)
    return float(np.median(queued_seconds([lambda: compute(there)], 10)))


def _copies(inputs: Mapping[str, Any], result: Any, chunks: float, transfer: Any) -> float:
    """Seconds of copying all chunks up and all results down, both at once, from pinned memory."""
    import cupy

    up, down = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    there = [(cupy.empty(data.shape, data.dtype), data) for data in inputs.values()]
    back = cupy.empty(result.shape, result.dtype)
    pinned = transfer.empty(result.nbytes)

    def copy() -> None:
        for _ in range(10):
            for to, data in there:
                to.data.copy_from_host_async(data.ctypes.data, data.nbytes, up)
            back.data.copy_to_host_async(pinned.ctypes.data, back.nbytes, down)
        up.synchronize()
        down.synchronize()

    copy()
    return seconds(copy) / 10 * chunks


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", default="1 GiB", help="of the device that is allowed")
    parser.add_argument("--times", type=float, default=10, help="as large are the data")
    parser.add_argument("--samples", type=int, default=16384, help="time samples of a channel")
    parser.add_argument("--precision", default="3xtf32", choices=list(PRECISIONS))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--stream", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    device = resolve("auto")
    whole = options.times * workload_of(options.memory, 1, 1, "fp32").case.device_memory_bytes()
    channels = round(whole / CHANNEL / options.samples)
    workload = workload_of(options.memory, channels, options.samples, options.precision)
    if options.stream:
        print(json.dumps(stream(workload, *options.stream, device)))
        return
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        report = measure(workload, folder, device, options.repeats)
    finally:
        shutil.rmtree(folder)
    report |= {
        "data_mib": whole / 2**20, "memory": options.memory, "precision": options.precision,
        "device": device.name, "folder": str(options.folder), "versions": versions(),
        "timestamp": timestamp(),
    }  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    for row in report["runs"]:
        alone = ", ".join(f"{name} {value:.2f} s" for name, value in row["alone"].items())
        streamed = row["stream"]
        print(
            f"{whole / 2**30:.3g} GiB in {streamed['chunks']} chunks: {streamed['seconds']:.2f} s, "
            f"{whole / 1e9 / streamed['seconds']:.2f} GB/s; alone {alone}; "
            f"{row['of_slowest']:.3f} of the rate of the slowest ({row['slowest']}); host peak "
            f"{streamed['host_peak_mib']:.0f} MiB, device {streamed['device_peak_mib']} MiB"
        )


def measure(workload: Workload, folder: Path, device: Device, repeats: int) -> dict[str, Any]:
    """The stream and its parts, so many times in turn."""
    staged, run = folder / "staged.h5", folder / "run.h5"
    case = workload.case
    write_operands(staged, case.channels, case.samples)
    rows = []
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.streaming", *sys.argv[1:],
             "--stream", str(staged), str(run)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        streamed = json.loads(done.stdout.splitlines()[-1])
        run.unlink()
        alone = parts_alone(workload, staged, run, device, streamed["chunks"])
        run.unlink()
        slowest = max(alone, key=lambda name: alone[name])
        rows.append({
            "stream": streamed, "alone": alone, "slowest": slowest,
            "of_slowest": alone[slowest] / streamed["seconds"],
        })  # fmt: skip
    return {"runs": rows}


if __name__ == "__main__":
    main()
