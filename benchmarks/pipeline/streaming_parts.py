"""The parts of a stream by themselves, and what their files' medium allows.

Each is the code that streams, over the same data, with nothing beside it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from argand import PRECISIONS, Device

from workflow.steps.run_results import blank_result
from workflow.steps.streaming import memory_for, plan_chunks
from workflow.steps.transfer import transfer_to
from workflow.storage.runs import write_run
from workflow.storage.slabs import SlabReader
from workflow.storage.staged import open_staged
from workflow.workloads.base import Workload

_PIECE = 4 << 20
"""Bytes of a call that writes; about those of a chunk of the result."""


def precision_of(workload: Workload) -> Any:
    """Return the one precision of the workload."""
    return PRECISIONS[workload.case.precisions[0]]


def parts_alone(workload: Workload, staged: Path, run: Path, device: Device) -> dict[str, float]:
    """Return the seconds of each part by itself, over as many chunks of the same size."""
    found: dict[str, float] = {}
    with open_staged(staged, workload.split_axes) as file:
        one = workload.argand(file.outline, precision_of(workload), device)
        plan = plan_chunks(workload, file.outline, one.precision, memory_for(workload, device))
        if plan.axis != "frequency":
            sys.exit(
                "three channels must fit into the memory: take fewer --samples, or more --memory"
            )
        transfer = transfer_to(device)
        names = list(file.outline.operands)
        readers = {name: SlabReader(file.dataset(name), file.ranges_of(name), 0) for name in names}
        slots = [_views(transfer, readers, plan.entries) for _ in range(2)]
        starts = range(0, plan.length, plan.entries)

        def read() -> None:
            for index, at in enumerate(starts):
                for name, into in slots[index % 2].items():
                    readers[name].read(at, into[: plan.length - at])

        found["read"] = seconds(read)
        inputs = slots[0]
        result = np.asarray(transfer.start(one.compute, inputs).wait()[0])
        if device.backend == "cuda":
            found["copy"] = _copies(inputs, result, plan.length / plan.entries, transfer)
        found["compute"] = _compute(one.compute, inputs, device) * plan.length / plan.entries
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


def _views(transfer: Any, readers: Mapping[str, SlabReader], entries: int) -> dict[str, Any]:
    return {
        name: transfer.empty(int(np.prod(reader.shape(entries))) * 8)
        .view(np.complex64)
        .reshape(reader.shape(entries))
        for name, reader in readers.items()
    }


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _compute(compute: Any, inputs: Mapping[str, Any], device: Device) -> float:
    """Return the seconds of one chunk on the device, the median of ten."""
    if device.backend == "cpu":
        return float(np.median([seconds(lambda: compute(inputs)) for _ in range(3)]))
    import cupy
    from argand.runtime.measuring.timing import queued_seconds

    there = {name: cupy.asarray(data) for name, data in inputs.items()}
    compute(there)
    return float(np.median(queued_seconds([lambda: compute(there)], 10)))


def _copies(inputs: Mapping[str, Any], result: Any, chunks: float, transfer: Any) -> float:
    """Return seconds of copying chunks up and results down at once, from pinned memory."""
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


def plain_write(path: Path, size: int, threads: int) -> float:
    """Return seconds of writing so many bytes to a new file by `_PIECE`, and syncing it."""
    piece = bytes(_PIECE)
    with path.open("wb") as file, ThreadPoolExecutor(threads) as pool:

        def write() -> None:
            places = range(0, size, _PIECE)
            for _ in pool.map(lambda at: os.pwrite(file.fileno(), piece, at), places):
                pass
            os.fsync(file.fileno())

        return seconds(write)
