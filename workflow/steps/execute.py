"""The run step: every precision and baseline of one workload, timed in one process."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from logging import Logger
from pathlib import Path
from typing import Any

from argand import Device, DeviceError, launched
from argand.precision import any_precision
from argand.runtime.measuring.ceilings import Ceilings

from workflow.data import Staged
from workflow.implementation import Implementation, NoResultError
from workflow.measuring.readings import Readings
from workflow.measuring.surroundings import BUSY
from workflow.shards import Shard
from workflow.steps.compiling import compile_kernels
from workflow.steps.in_turn import Ready, readings_of, times_in_turn
from workflow.steps.kept_times import KeptTimes
from workflow.steps.resident import free
from workflow.steps.run_results import (
    blank_result,
    computed,
    line_of,
    summary_of,
    with_kernels,
    written,
)
from workflow.steps.streaming import exceeds, limited_device_memory, memory_for, stream_result
from workflow.storage.memory import machine_memory
from workflow.storage.runs import Result, RunWriter, write_run
from workflow.storage.staged import StagedFile, open_staged
from workflow.workloads.base import Workload


def execute(
    workload: Workload,
    staged_path: Path,
    run_path: Path,
    device: Device,
    log: Logger,
    shard: Shard | None = None,
    ceilings: Callable[[Device], Ceilings] | None = None,
    kept: KeptTimes | None = None,
) -> str:
    """Compute and time a workload, or one shard, at each of its precisions, and its baselines.

    The results go into a run file. Returns a summary of one line.

    ``ceilings`` measures what the device can do, right before the workload, because times are
    compared with what was possible while they were taken. Where other programs kept cores busy
    meanwhile, and on a GPU, whose clock falls as it warms, it measures right after too, and the
    better of both are written beside the results. Rows whose times ``kept`` has are computed and
    not timed again, and where these are all, nothing is measured.

    A row that the device cannot compute (a precision newer than it, more memory than it has) or
    that has no result (`NoResultError`) is recorded with its reason, and the rest goes on; any
    other error ends the job.
    """
    attributes = {"backend": device.backend, "device": device.name}
    kept = kept or KeptTimes()
    with (
        open_staged(staged_path, workload.split_axes, shard) as file,
        write_run(run_path, workload.name, attributes) as writer,
    ):
        job = _Job(workload, _Operands(file), device, writer, log)
        implementations = job.implementations()
        known = kept.cover(implementations)
        before = ceilings(device) if ceilings and not known else None
        with limited_device_memory(workload, device):
            job.compile(implementations)
            started = time.perf_counter()
            found, is_new = job.timed([job.attempt(one) for one in implementations], kept)
            computing = time.perf_counter() - started
        free(device)
        again = ceilings and is_new and (not before or _is_disturbed(device, found))
        after = ceilings(device) if ceilings and again else None
        measures = [one for one in (kept.ceilings, before, after) if one]
        able = reduce(Ceilings.best, measures) if measures else None
        if able:
            writer.add_ceilings(able)
            log.info("%s: copies %.0f GB/s", device, able.copy_gbytes_per_s)
    if able and is_new:
        kept.write(found, able)
    for result in found:
        log.info("%s", line_of(result))
    log.info("computing took %.2f s", computing)
    return summary_of(found)


def _is_disturbed(device: Device, found: Sequence[Result]) -> bool:
    """Return whether what the device can do may have changed while these results were timed."""
    timed = [one.load for one in found if one.time_us_p50 is not None]
    return device.backend != "cpu" or any(load is None or load >= BUSY for load in timed)


def precisions_of(workload: Workload) -> list[Any]:
    """Return the precisions that a workload measures, with the rounding its case asks for."""
    case = workload.case
    return [any_precision(name, case.rounding.get(name)) for name in case.precisions]


class _Operands:
    """The operands of a staged file: read whole when they are first needed so, then kept."""

    def __init__(self, file: StagedFile) -> None:
        self.file = file
        self.read_us = 0.0
        self._staged: Staged | None = None

    def whole(self) -> Staged:
        """Return all operands, whole."""
        if self._staged is None:
            started = time.perf_counter()
            self._staged = self.file.read()
            self.read_us = 1e6 * (time.perf_counter() - started)
        return self._staged


@dataclass(frozen=True)
class _Job:
    """The state that all attempts of a run share."""

    workload: Workload
    operands: _Operands
    device: Device
    writer: RunWriter
    log: Logger

    def implementations(self) -> list[Implementation]:
        """Return ours at each precision, then the peers."""
        # Where nothing can be streamed the operands are all needed, and their values plan the work.
        given = self.operands.file.outline if self.workload.splits else self.operands.whole()
        ours = [
            self.workload.argand(given, precision, self.device)
            for precision in precisions_of(self.workload)
        ]
        return [*ours, *self.workload.baselines(given, self.device)]

    @property
    def _room(self) -> int:
        """Bytes of the device, and of the host, that a result and all around it may take."""
        return min(memory_for(self.workload, self.device), machine_memory())

    def compile(self, implementations: Sequence[Implementation]) -> None:
        """Compile, together, the kernels of implementations that compute in one piece."""
        whole = [one for one in implementations if not self._exceeds(one)]
        compile_kernels(whole, self.operands.whole, self.device, self.log)

    def _exceeds(self, one: Implementation) -> bool:
        return exceeds(self.workload, self.operands.file.outline, one.precision, self._room)

    def attempt(self, one: Implementation) -> tuple[Result, Ready | None]:
        """Compute and write one result; it is returned without its data.

        The second is None where it is not to be timed with the others: it could not be computed, is
        empty, or was streamed, which times it.
        """
        blank = blank_result(self.workload, one, self.device)
        needed = one.precision.min_sm
        if self.device.arch is not None and self.device.arch.sm < needed:
            return self._unable(blank, f"needs compute capability {needed / 10}"), None
        if not self._exceeds(one):
            try:
                staged = self.operands.whole()
                with launched() as names:
                    result, ready = computed(blank, one, staged, self.device, self.operands.read_us)
                result = replace(result, algorithm=with_kernels(one, names))
                return written(self.writer, result), ready
            except NoResultError as error:
                return self._unable(blank, str(error)), None
            except DeviceError as error:
                return self._unable(blank, f"{type(error).__name__}: {error}"), None
            except MemoryError as error:
                if not self.workload.splits:
                    return self._unable(blank, f"{type(error).__name__}: {error}"), None
                self.log.warning(
                    "out of memory with all of it on the device: in chunks (%s)", error
                )
        return self._streamed(blank, one, memory_for(self.workload, self.device)), None

    def timed(
        self, found: Sequence[tuple[Result, Ready | None]], kept: KeptTimes
    ) -> tuple[list[Result], bool]:
        """Return the results with their times, written, and whether any of these was taken now.

        Those that ``kept`` has not and that are ready are measured in turn.
        """
        known = [kept.of(result, timed=_is_timed(result, one)) for result, one in found]
        new = [place for place, readings in enumerate(known) if readings is None]
        times = self._times([one for place in new if (one := found[place][1]) is not None])
        results = []
        for (result, one), readings in zip(found, known, strict=True):
            if readings is None:
                readings = {} if one is None else next(times)
            results.append(self.writer.amend(result, **readings))
        if len(new) < len(found):
            known_count = len(found) - len(new)
            self.log.info("%d of %d rows have the times of an earlier run", known_count, len(found))
        return results, bool(new)

    def _times(self, ready: Sequence[Ready]) -> Iterator[Readings]:
        if not ready:
            return iter(())  # what was streamed must not be read whole
        device = replace(self.device, memory_bytes=self._room)
        free(self.device)
        found = times_in_turn(ready, self.operands.whole().operands, device, self.log)
        return itertools.starmap(readings_of, found)

    def _streamed(self, blank: Result, one: Implementation, memory: int) -> Result:
        self.writer.add(blank)
        try:
            with launched() as names:
                result, _ = stream_result(
                    self.workload, one, self.operands.file, blank, self.writer, self.device, memory,
                    self.log,
                )  # fmt: skip
        except (DeviceError, MemoryError, NoResultError) as error:
            named = "" if isinstance(error, NoResultError) else f"{type(error).__name__}: "
            return self.writer.amend(blank, reason=f"{named}{error}")
        return self.writer.amend(result, algorithm=with_kernels(one, names))

    def _unable(self, blank: Result, reason: str) -> Result:
        return self.writer.add(replace(blank, reason=reason))


def _is_timed(result: Result, ready: Ready | None) -> bool:
    """Return whether a result can be timed, or was timed while it was streamed."""
    return ready is not None or result.time_us_p50 is not None
