"""The verify step: a run's results against the truth, as records."""

from __future__ import annotations

from dataclasses import asdict
from logging import Logger
from pathlib import Path
from typing import Any

from argand import get_precision
from argand.ceilings import Ceilings

from workflow.accuracy import Accuracy
from workflow.methods.shards import Shard
from workflow.records import Record
from workflow.storage.datasets import Result, read_results
from workflow.storage.staged import read_staged
from workflow.workloads.base import Shape, Staged, Workload


def verify(
    workload: Workload,
    staged_path: Path,
    run_path: Path,
    ceilings: Ceilings,
    log: Logger,
    shard: Shard | None = None,
) -> list[Record]:
    """One record for each result of a run file, in its order.

    The run is of the whole workload, or of one shard, which is judged by itself.
    """
    staged = read_staged(staged_path, workload.splits, shard)
    reference = workload.reference(staged)
    records = []
    for result in read_results(run_path):
        record = _record(workload, shard, staged, reference, result, ceilings)
        records.append(record)
        verdict = "verified" if record.verified else f"NOT verified: {record.reason}"
        log.info("%-8s %-7s %s", record.implementation, record.precision, verdict)
    passed = sum(record.verified for record in records)
    log.info("%s", f"{passed} of {len(records)} results verified against fp64")
    return records


def _record(
    workload: Workload,
    shard: Shard | None,
    staged: Staged,
    reference: Any,
    result: Result,
    ceilings: Ceilings,
) -> Record:
    precision = get_precision(result.precision, result.rounding.split(","))
    shape = workload.shape(staged, precision)
    common = {
        "workload": workload.name,
        "kind": workload.kind,
        "implementation": result.implementation,
        "precision": result.precision,
        "algorithm": result.algorithm,
        "device": result.device,
        "shard": str(shard or ""),
        "tolerance": workload.case.tolerance,
        "kernel_digest": result.kernel_digest,
        "versions": result.versions,
        "timestamp": result.timestamp,
        **_sizes(shape),
    }
    if result.data is None:
        return Record(**common, verified=False, reason=result.reason)
    accuracy = workload.assess(staged, reference, result.data, precision, result.backend)
    return Record(**common, **_speed(result, shape, ceilings), **_errors(accuracy))


def _sizes(shape: Shape) -> dict[str, Any]:
    sizes = asdict(shape)
    del sizes["flops"], sizes["bytes_moved"]
    return sizes


def _errors(accuracy: Accuracy) -> dict[str, Any]:
    return asdict(accuracy)


def _speed(result: Result, shape: Shape, ceilings: Ceilings) -> dict[str, Any]:
    """Times, and the rates that the nominal work means at the median time."""
    if not result.time_us_p50:
        return {}
    seconds = 1e-6 * result.time_us_p50
    precision = get_precision(result.precision)
    limit = None
    if ceilings.device == result.device:  # jobs of one study may run on GPUs of several models
        limit = ceilings.limit_time_s(shape.flops, shape.bytes_moved, precision)
    return {
        "time_us_p20": result.time_us_p20,
        "time_us_p50": result.time_us_p50,
        "time_us_p80": result.time_us_p80,
        "end_to_end_us": result.end_to_end_us,
        "predicted_us": result.predicted_us,
        "iterations": result.iterations,
        "chunks": result.chunks,
        "energy_j": result.energy_j,
        "tflops": shape.flops / seconds / 1e12,
        "gbytes_per_s": shape.bytes_moved / seconds / 1e9,
        "limit_fraction": None if limit is None else limit / seconds,
    }
