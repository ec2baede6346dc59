"""The run step: every precision and baseline of one workload, timed in one process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from logging import Logger
from pathlib import Path
from typing import Any

import numpy as np
from argand import Device, DeviceError, get_precision, launched
from argand.runtime.kernel_digest import kernel_digest

from workflow.data import Array, Implementation, Staged
from workflow.shards import Shard
from workflow.steps.streaming import exceeds, limited_device_memory, memory_for, stream_result
from workflow.storage.datasets import Result, RunWriter, write_run
from workflow.storage.memory import machine_memory
from workflow.storage.staged import StagedFile, open_staged
from workflow.timing import REPEATS, Timing, measure, rotations, with_allocations
from workflow.versions import timestamp, versions
from workflow.workloads.base import Workload


def execute(
    workload: Workload,
    staged_path: Path,
    run_path: Path,
    device: Device,
    log: Logger,
    shard: Shard | None = None,
) -> str:
    """Compute and time a workload, or one shard, at each of its precisions, and its baselines.

    The results go into a run file.

    Returns a summary of one line.

    What a device cannot do (a precision newer than it, more memory than it has) is recorded with
    its reason and the rest goes on; any other error ends the job.
    """
    attributes = {"backend": device.backend, "device": device.name}
    found: list[Result] = []
    computing = 0.0
    with (
        open_staged(staged_path, workload.split_axes, shard) as file,
        write_run(run_path, workload.name, attributes) as writer,
        limited_device_memory(workload, device),
    ):
        job = _Job(workload, _Operands(file), device, writer, log)
        for implementation in job.implementations():
            started = time.perf_counter()
            found.append(job.attempt(implementation))
            computing += time.perf_counter() - started
            log.info("%s", _line(found[-1]))
    log.info("computing took %.2f s", computing)
    return _summary(found)


def precisions_of(workload: Workload) -> list[Any]:
    """The precisions that a workload measures, with the rounding its case asks for."""
    case = workload.case
    return [get_precision(name, case.rounding.get(name)) for name in case.precisions]


class _Operands:
    """The operands of a staged file: read whole when they are first needed so, then kept."""

    def __init__(self, file: StagedFile) -> None:
        self.file = file
        self.read_us = 0.0
        self._staged: Staged | None = None

    def whole(self) -> Staged:
        """All of them."""
        if self._staged is None:
            started = time.perf_counter()
            self._staged = self.file.read()
            self.read_us = 1e6 * (time.perf_counter() - started)
        return self._staged


@dataclass(frozen=True)
class _Job:
    """What all attempts of a run share."""

    workload: Workload
    operands: _Operands
    device: Device
    writer: RunWriter
    log: Logger

    def implementations(self) -> list[Implementation]:
        """Ours at each precision, then the peers."""
        # Where nothing can be streamed the operands are all needed, and their values plan the work.
        given = self.operands.file.outline if self.workload.splits else self.operands.whole()
        ours = [
            self.workload.argand(given, precision, self.device)
            for precision in precisions_of(self.workload)
        ]
        return [*ours, *self.workload.baselines(given, self.device)]

    def attempt(self, one: Implementation) -> Result:
        """Compute, time and write one result; it is returned without its data."""
        blank = blank_result(self.workload, one, self.device)
        needed = one.precision.min_sm
        if self.device.arch is not None and self.device.arch.sm < needed:
            return self._unable(blank, f"needs compute capability {needed / 10}")
        memory = memory_for(self.workload, self.device)
        room = min(memory, machine_memory())
        if not exceeds(self.workload, self.operands.file.outline, one.precision, room):
            try:
                device = replace(self.device, memory_bytes=memory)
                with launched() as names:
                    result = _timed(
                        blank, one, self.operands.whole(), device, self.operands.read_us
                    )
                result = replace(result, algorithm=_with_kernels(one, names))
                _write(self.writer, result)
                return replace(result, data=None)  # so that two results are never in memory
            except DeviceError as error:
                return self._unable(blank, f"{type(error).__name__}: {error}")
            except MemoryError as error:
                if not self.workload.splits:
                    return self._unable(blank, f"{type(error).__name__}: {error}")
                self.log.warning(
                    "out of memory with all of it on the device: in chunks (%s)", error
                )
        return self._streamed(blank, one, memory)

    def _streamed(self, blank: Result, one: Implementation, memory: int) -> Result:
        self.writer.add(blank)
        try:
            with launched() as names:
                result, _ = stream_result(
                    self.workload, one, self.operands.file, blank, self.writer, self.device, memory,
                    self.log,
                )  # fmt: skip
        except (DeviceError, MemoryError) as error:
            reason = f"{type(error).__name__}: {error}"
            self.writer.amend(blank, reason=reason)
            return replace(blank, reason=reason)
        result = replace(result, algorithm=_with_kernels(one, names))
        found = ("time_us_p50", "end_to_end_us", "iterations", "chunks", "algorithm")
        self.writer.amend(blank, **{name: getattr(result, name) for name in found})
        return result

    def _unable(self, blank: Result, reason: str) -> Result:
        result = replace(blank, reason=reason)
        self.writer.add(result)
        return result


def _with_kernels(implementation: Implementation, names: Sequence[str]) -> str:
    """The record's algorithm: how it computes, and on which kernels it did."""
    return ", ".join([implementation.algorithm, *(["; ".join(names)] if names else [])])


def blank_result(workload: Workload, implementation: Implementation, device: Device) -> Result:
    """A result of which nothing is known yet."""
    return Result(
        implementation=implementation.name,
        precision=implementation.precision.name,
        algorithm=implementation.algorithm,
        device=device.name,
        backend=device.backend,
        data=None,
        rounding=",".join(implementation.precision.roundings),
        steps=implementation.steps,
        predicted_us=implementation.predicted_us,
        kernel_digest=kernel_digest(workload.operation) if implementation.name == "argand" else "",
        versions=versions(),
        timestamp=timestamp(),
    )


def _timed(
    blank: Result, implementation: Implementation, staged: Staged, device: Device, read_us: float
) -> Result:
    operands = implementation.prepare(staged.operands)
    started = time.perf_counter()
    resident = upload(operands, device)
    upload_us = 1e6 * (time.perf_counter() - started)
    first, allocated = with_allocations(partial(implementation.compute, resident), device)
    if not first.size:
        return replace(blank, data=download(first), reason="empty result: nothing to time")
    del first
    timing = _time(implementation, operands, resident, device, allocated)
    started = time.perf_counter()
    data = download(implementation.compute(resident))
    computed_us = 1e6 * (time.perf_counter() - started)
    return replace(
        blank,
        data=data,
        time_us_p20=timing.time_us_p20,
        time_us_p50=timing.time_us_p50,
        time_us_p80=timing.time_us_p80,
        iterations=timing.iterations,
        energy_j=timing.energy_j,
        end_to_end_us=read_us + upload_us + computed_us,
    )


def _time(
    implementation: Implementation,
    operands: Mapping[str, Array],
    resident: Mapping[str, Any],
    device: Device,
    allocated: int | None,
) -> Timing:
    """Time over as many copies of the inputs as it takes to leave the cache.

    On a GPU the clock is the card's, as in the benchmarks: what Python takes to make a short call
    would hide what the kernels of two libraries differ in.
    """
    size = sum(value.nbytes for value in operands.values() if _moves(value))
    wanted = rotations(device, size, allocated)
    if device.backend == "cpu":
        wanted = min(wanted, REPEATS)  # no more are called; a GPU's energy takes further calls
    copies = [resident, *(upload(operands, device, copy=True) for _ in range(wanted - 1))]
    calls = [partial(implementation.compute, inputs) for inputs in copies]
    return measure(calls, device, held=True)


def _moves(value: Any) -> bool:
    """Whether an operand is data; integers describe the computation and stay with the host."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def upload(
    operands: Mapping[str, Array], device: Device, *, copy: bool = False
) -> Mapping[str, Any]:
    """The operands in the device's memory; a copy of them where ``copy`` is set."""
    if device.backend == "cpu":
        return {k: v.copy() if copy and _moves(v) else v for k, v in operands.items()}
    import cupy

    with cupy.cuda.Device(device.index):
        moved = {k: cupy.array(v) if _moves(v) else v for k, v in operands.items()}
        cupy.cuda.get_current_stream().synchronize()
    return moved


def download(result: Any) -> Array:
    """A result in the host's memory, finished."""
    return np.asarray(result.get() if hasattr(result, "get") else result)


def _write(writer: RunWriter, result: Result) -> None:
    """Write a result and add the time that took to its end-to-end time."""
    started = time.perf_counter()
    writer.add(result)
    written_us = 1e6 * (time.perf_counter() - started)
    if result.end_to_end_us is not None:
        writer.amend(result, end_to_end_us=result.end_to_end_us + written_us)


def _line(result: Result) -> str:
    what = f"{result.implementation:8} {result.precision:7} {result.algorithm}"
    if result.time_us_p50 is None:
        return f"{what}: {result.reason}"
    predicted = f", predicted {result.predicted_us:.1f} us" if result.predicted_us else ""
    return f"{what}: {result.time_us_p50:.1f} us, median of {result.iterations}{predicted}"


def _summary(results: list[Result]) -> str:
    ours = [r for r in results if r.implementation == "argand" and r.time_us_p50 is not None]
    if not ours:
        return f"nothing could be timed: {results[0].reason}"
    fastest = min(ours, key=lambda result: result.time_us_p50 or 0)
    count = f"{len(ours)} precisions, {len(results) - len(ours)} baselines"
    return f"{count}; fastest {fastest.precision} {(fastest.time_us_p50 or 0) / 1000:.3g} ms"
