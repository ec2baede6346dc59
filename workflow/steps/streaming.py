"""Streams of results through a device: whether one is needed, its chunks, and its loop."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from logging import Logger
from typing import Any

import numpy as np
from argand import Device, DeviceError, Precision

from workflow.data import Staged, blank
from workflow.implementation import Implementation
from workflow.jobs.progress import Bar
from workflow.steps.chunk_loop import Busy, ChunkTooLargeError, Stream, Streamed
from workflow.steps.transfer import transfer_to
from workflow.storage.memory import in_words, machine_memory
from workflow.storage.runs import Result, RunWriter
from workflow.storage.slabs import SlabReader
from workflow.storage.staged import StagedFile
from workflow.workloads.base import Workload

WORKSPACE = 2
"""A whole computation takes its operands and result and, at most about, as much again: packed or
split operands, the copies that are timed in turn."""
SHARE = 3
"""Streamed chunks on the device at once: two and the workspace of one."""
MAX_CHUNK_BYTES = 256 << 20
"""Operands and result of a chunk: larger ones gain nothing and take host memory."""
HOST_BYTES = 6 * MAX_CHUNK_BYTES
"""Bytes of host memory that a stream takes at most: four chunks of operands and five of results."""
MIN_CHUNKS = 8
"""Fewest chunks of a stream: fewer would hardly overlap."""
_GRAINS = 16
"""A chunk of data is at least so many chunks of the file, where it can be: room to be halved."""


def memory_for(workload: Workload, device: Device) -> int:
    """Return the bytes a job may take on its device: what the case allows, or what is free."""
    allowed = workload.case.device_memory_bytes()
    there = machine_memory()
    if device.backend == "cuda":
        import cupy

        with cupy.cuda.Device(device.index):
            free = int(cupy.cuda.runtime.memGetInfo()[0])
            there = free + int(cupy.get_default_memory_pool().free_bytes())  # kept, but not in use
    return there if allowed is None else min(allowed, there)


@contextlib.contextmanager
def limited_device_memory(workload: Workload, device: Device) -> Iterator[None]:
    """Hold a GPU's arrays to `memory_for`; then MemoryError. On the CPU it is only planned with."""
    if device.backend != "cuda" or workload.case.device_memory_bytes() is None:
        yield
        return
    import cupy

    pool = cupy.get_default_memory_pool()
    with cupy.cuda.Device(device.index):
        # Memory that this process holds already, such as counters of products, is no job's. The
        # limit counts blocks whole, and an array in use keeps the whole block it was cut from.
        pool.free_all_blocks()
        pool.set_limit(size=pool.total_bytes() + memory_for(workload, device))
        try:
            yield
        finally:
            pool.set_limit(size=0)


def exceeds(workload: Workload, outline: Staged, precision: Precision, memory: int) -> bool:
    """Return whether a computation needs more than ``memory`` and can be streamed instead."""
    needed = WORKSPACE * workload.shape(outline, precision).bytes_moved
    return bool(workload.splits) and needed > memory


@dataclass(frozen=True)
class Chunking:
    """Chunks of ``entries`` of the ``length`` entries of an axis."""

    axis: str
    length: int
    entries: int


def plan_chunks(
    workload: Workload, outline: Staged, precision: Precision, memory: int, constants: int = 0
) -> Chunking:
    """Return the first axis along which chunks fit, and the largest that do.

    ``constants`` are bytes that stay on the device beside the operands that all chunks share.
    Raises DeviceError, with what there is and what is needed, where not even one entry fits.
    """
    lengths, tried = outline.axis_lengths(), []
    moved = workload.shape(outline, precision).bytes_moved
    for axis in workload.split_axes(outline.axes):
        if lengths.get(axis, 1) < 2:
            continue
        shared = shared_bytes(outline, axis, precision)
        entry = max(1.0, SHARE * (moved - shared) / lengths[axis])
        kept = shared + constants
        if kept + entry <= memory:
            room = min(memory - kept, SHARE * MAX_CHUNK_BYTES)
            most = -(-lengths[axis] // MIN_CHUNKS)
            entries = max(1, min(int(room / entry), most))
            return Chunking(axis, lengths[axis], entries // _grain(entries) * _grain(entries))
        tried.append(f"{in_words(int(kept + entry))} for one of axis {axis}")
    needs = " or ".join(tried) or f"{in_words(int(WORKSPACE * moved))}, and no axis to stream along"
    raise DeviceError(f"does not fit into {in_words(memory)} of device memory: needs {needs}")


def _grain(entries: int) -> int:
    """Return the most entries of a chunk of the file: a power of two, so that chunks are halved."""
    return 1 << max(0, (entries // _GRAINS).bit_length() - 1)


def shared_bytes(outline: Staged, axis: str, precision: Precision) -> int:
    """Return the bytes of the device for the operands that every chunk needs whole."""
    sizes = []
    for name in outline.whole_along(axis):
        data = outline.operands[name]
        kind = precision.output if data.dtype.kind == "c" else precision.real_output
        sizes.append(data.size * np.dtype(kind).itemsize)
    return sum(sizes)


def stream_result(
    workload: Workload,
    one: Implementation,
    staged: StagedFile,
    blank: Result,
    writer: RunWriter,
    device: Device,
    memory: int,
    log: Logger,
) -> tuple[Result, Busy]:
    """Compute an implementation in chunks and write its result, which was added blank, and times.

    Returns the result, without data, and how busy each part was. Raises DeviceError or MemoryError
    where no chunk fits.
    """
    began = time.perf_counter()
    transfer = transfer_to(device)
    transfer.drop()  # what earlier results left
    with contextlib.ExitStack() as open_readers:
        chunking, shared, kinds = _planned(workload, one, staged, memory)
        transfer.keep(shared)
        operands = {
            name: Streamed(open_readers.enter_context(_reader(staged, name, chunking)), kind)
            for name, kind in kinds.items()
        }
        bar = open_readers.enter_context(
            Bar(f"{workload.name} {blank.implementation} {blank.precision}", chunking.length)
        )
        stream = Stream(operands, transfer, one.proved or one.compute, _unset, bar.show)
        chunking, result = _first(stream, chunking, log)
        axes = workload.product(staged.outline, result).axes
        shape = list(result.shape)
        at = axes.index(chunking.axis)
        shape[at] = chunking.length
        with writer.slabs(blank, shape, result.dtype, at, _grain(chunking.entries)) as slabs:
            stream.write = slabs.write
            _run(stream, chunking, slabs.grain, log)
    busy = stream.busy
    log.info(
        "streamed %d %s in %d chunks, %.1f s: reading took %.1f s, computing %.1f s, writing "
        "%.1f s, at the same time",
        chunking.length, chunking.axis, busy.chunks, busy.elapsed, busy.read, busy.computed,
        busy.written,
    )  # fmt: skip
    streamed = writer.amend(
        blank,
        time_us_p50=1e6 * busy.computed,
        end_to_end_us=1e6 * (time.perf_counter() - began),
        iterations=1,
        chunks=busy.chunks,
    )
    return streamed, busy


def _unset(start: int, result: Any) -> None:
    raise AssertionError("the result's place is known after the first chunk")


def _planned(
    workload: Workload, one: Implementation, staged: StagedFile, memory: int
) -> tuple[Chunking, dict[str, Any], dict[str, np.dtype[Any]]]:
    """Return the chunks that fit beside what is prepared for all of them, and `_prepared`."""
    first = plan_chunks(workload, staged.outline, one.precision, memory)
    shared, kinds = _prepared(one, staged, first)
    constants = sum(data.nbytes for data in shared.values())
    constants -= shared_bytes(staged.outline, first.axis, one.precision)
    chunking = plan_chunks(workload, staged.outline, one.precision, memory, max(0, constants))
    if chunking.axis != first.axis:
        shared, kinds = _prepared(one, staged, chunking)
    return chunking, shared, kinds


def _prepared(
    one: Implementation, staged: StagedFile, chunking: Chunking
) -> tuple[dict[str, Any], dict[str, np.dtype[Any]]]:
    """Return the operands that all chunks share, prepared, and the types of those in chunks."""
    outline = staged.outline
    shared = outline.whole_along(chunking.axis)
    given = {}
    for name, data in outline.operands.items():
        if name in shared:
            given[name] = staged.operand(name)
        else:  # one entry, for the type that it is prepared to
            shape = list(data.shape)
            shape[outline.axes[name].index(chunking.axis)] = 1
            given[name] = blank(tuple(shape), data.dtype)
    prepared = one.prepare(given)
    streamed = [name for name in outline.operands if name not in shared]
    kinds = {name: prepared[name].dtype for name in streamed}
    return {name: data for name, data in prepared.items() if name not in kinds}, kinds


def _reader(staged: StagedFile, name: str, chunking: Chunking) -> SlabReader:
    axis = staged.outline.axes[name].index(chunking.axis)
    return SlabReader(staged.dataset(name), staged.ranges_of(name), axis)


def _first(stream: Stream, chunking: Chunking, log: Logger) -> tuple[Chunking, Any]:
    """Return the first chunk's result, in chunks that fit; the last one's size is warmed up too."""
    while True:
        try:
            result = stream.first(chunking.entries)
            if chunking.length % chunking.entries:
                stream.first(chunking.length % chunking.entries)
            return chunking, result
        except MemoryError as error:
            chunking = _halved(stream, chunking, 1, error, log)


def _run(stream: Stream, chunking: Chunking, grain: int, log: Logger) -> None:
    """Run all chunks, smaller ones from where they did not fit any more."""
    position = 0
    while position < chunking.length:
        try:
            stream.run(position, chunking.length, chunking.entries)
            return
        except ChunkTooLargeError as error:
            position = error.position
            chunking = _halved(stream, chunking, grain, error, log)


def _halved(
    stream: Stream, chunking: Chunking, grain: int, error: MemoryError, log: Logger
) -> Chunking:
    if chunking.entries <= grain:
        raise MemoryError(
            f"not even a chunk of {chunking.entries} along axis {chunking.axis} fits on the device "
            f"({error})"
        ) from error
    entries = max(grain, chunking.entries // 2 // grain * grain)
    log.warning(
        "out of memory on the device with chunks of %d along axis %s: going on with %d",
        chunking.entries, chunking.axis, entries,
    )  # fmt: skip
    stream.transfer.drop()
    return replace(chunking, entries=entries)
