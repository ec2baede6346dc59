"""Results of a run: computed, written beside their times, and logged on a line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from argand import Device
from argand.runtime.compile.kernel_digest import kernel_digest

from workflow.counted import counted, in_time_units
from workflow.cpu_models import is_model
from workflow.data import Staged
from workflow.implementation import Implementation
from workflow.measuring.timing import with_allocations
from workflow.steps.in_turn import Ready
from workflow.steps.resident import download, upload
from workflow.storage.runs import Result, RunWriter
from workflow.versions import timestamp, versions
from workflow.workloads.base import Workload


def with_kernels(implementation: Implementation, names: Sequence[str]) -> str:
    """Return the record's algorithm: how it computes, on which kernels it did, how it is proved."""
    words = implementation.algorithm, "; ".join(names), implementation.proof
    return ", ".join(filter(None, words))


def blank_result(workload: Workload, implementation: Implementation, device: Device) -> Result:
    """Return a result about which nothing is known yet."""
    return Result(
        implementation=implementation.name,
        precision=implementation.precision.name,
        algorithm=implementation.algorithm,
        device=device.name,
        backend=device.backend,
        data=None,
        rounding=implementation.rounding,
        plan_words=implementation.plan_words,
        predicted_us=implementation.predicted_us,
        kernel_digest=kernel_digest(workload.operation) if implementation.is_ours else "",
        versions=versions(),
        timestamp=timestamp(),
    )


def computed(
    blank: Result, implementation: Implementation, staged: Staged, device: Device, read_us: float
) -> tuple[Result, Ready | None]:
    """Return the result, and what is left to be timed; nothing for an empty one.

    The data are those of `Implementation.proved` where there is one, whose error ends the job: a
    machine that computes wrongly does so at other precisions, where nothing proves it.
    """
    operands = implementation.prepare(staged.operands)
    started = time.perf_counter()
    resident = upload(operands, device)
    upload_us = 1e6 * (time.perf_counter() - started)
    first, allocated = with_allocations(partial(implementation.compute, resident), device)
    if not first.size:
        return replace(blank, data=download(first), reason="empty result: nothing to time"), None
    del first
    started = time.perf_counter()
    data = download(implementation.compute(resident))
    computed_us = 1e6 * (time.perf_counter() - started)
    if implementation.proved is not None:
        del data  # two results of one size are not in memory
        data = download(implementation.proved(resident))
    end_to_end = read_us + upload_us + computed_us
    return replace(blank, data=data, end_to_end_us=end_to_end), Ready(implementation, allocated)


def written(writer: RunWriter, result: Result) -> Result:
    """Return the result without its data, which are written; that is in its end-to-end time."""
    started = time.perf_counter()
    added = writer.add(result)
    written_us = 1e6 * (time.perf_counter() - started)
    if added.end_to_end_us is None:
        return added
    return writer.amend(added, end_to_end_us=added.end_to_end_us + written_us)


def line_of(result: Result) -> str:
    """Return a result on a line of the log."""
    what = f"{result.implementation:8} {result.precision:7} {result.algorithm}"
    if result.time_us_p50 is None:
        return f"{what}: {result.reason}"
    predicted = f", predicted {result.predicted_us:.1f} us" if result.predicted_us else ""
    known = "" if result.settled in (True, None) else ", unsettled"
    return f"{what}: {result.time_us_p50:.1f} us, median of {result.iterations}{known}{predicted}"


def summary_of(results: list[Result]) -> str:
    """Return how many were timed, and the fastest of ours that is no model of a GPU's."""
    timed = [r for r in results if r.time_us_p50 is not None]
    ours = [r for r in timed if r.is_ours]
    if not ours:
        return f"nothing could be timed: {results[0].reason}"
    count = f"{counted(len(ours), 'precision')}, {counted(len(timed) - len(ours), 'baseline')}"
    if untimed := len(results) - len(timed):
        count += f", {untimed} could not be timed"
    own = [r for r in ours if not is_model(r.precision, r.backend)]
    if not own:
        return f"{count}; all of ours are models of a GPU's"
    fastest = min(own, key=lambda result: result.time_us_p50 or 0)
    return f"{count}; fastest {fastest.precision} {in_time_units(fastest.time_us_p50 or 0)}"
