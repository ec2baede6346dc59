"""The verify step: a run's results against the truth, as records."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import partial
from logging import Logger
from pathlib import Path
from typing import Any

import numpy as np
from argand import Precision
from argand.precision import any_precision
from argand.runtime.measuring.ceilings import Ceilings

from workflow.accuracy import Accuracy, worst_of
from workflow.config.file_input import WorkloadInput
from workflow.data import Staged
from workflow.implementation import Shape
from workflow.inputs.provenance import file_digests
from workflow.jobs.progress import Bar
from workflow.measuring.readings import READINGS
from workflow.processes import shared_out
from workflow.records import Record
from workflow.shards import Shard
from workflow.steps.pieces import Piece, pieces_of
from workflow.storage.runs import Result, RunFile, open_run
from workflow.storage.staged import StagedFile, open_staged
from workflow.threads import by_threads
from workflow.workloads.base import Workload


def verify(
    workload: Workload,
    staged_path: Path,
    run_path: Path,
    ceilings: Ceilings,
    log: Logger,
    shard: Shard | None = None,
    threads: int = 1,
) -> list[Record]:
    """Return one record for each result of a run file, in its order.

    The run is of the whole workload, or of one shard, which is verified by itself. A large one is
    verified in pieces (`workflow.steps.pieces`), whose worst one counts, by as many processes as
    ``threads``; where there are fewer pieces, threads share the work on each. The records do not
    depend on the number of threads, provided that BLAS has one (`workflow.threads.hold_blas`).
    """
    opened = partial(_opened, workload, staged_path, run_path, shard)
    results, described, assessed = _assess(workload, opened, threads, log)
    records = []
    for result, accuracies in zip(results, assessed, strict=True):
        record = _record(workload, shard, described, result, accuracies, ceilings)
        records.append(record)
        verdict = "verified" if record.verified else f"NOT verified: {record.reason}"
        log.info("%-8s %-7s %s", record.implementation, record.precision, verdict)
    passed = sum(record.verified for record in records)
    log.info("%s", f"{passed} of {len(records)} results verified against fp64")
    return records


Assessed = list[dict[str, Accuracy]]
"""For each result the accuracy of each piece by the piece's name; none where it has no data."""
Opened = Callable[[], AbstractContextManager[tuple[StagedFile, RunFile]]]


@contextlib.contextmanager
def _opened(
    workload: Workload, staged_path: Path, run_path: Path, shard: Shard | None
) -> Iterator[tuple[StagedFile, RunFile]]:
    with (
        open_staged(staged_path, workload.split_axes, shard) as staged,
        open_run(run_path) as run,
    ):
        yield staged, run


def _assess(
    workload: Workload, opened: Opened, threads: int, log: Logger
) -> tuple[list[Result], Staged, Assessed]:
    """Return the results, what is verified, its shape, and the accuracy of all pieces."""
    with opened() as (staged, run):
        # Without an axis to split the operands are read whole: their values may describe the work.
        whole = staged.outline if workload.splits else staged.read()
        pieces, results = pieces_of(workload, whole), run.results
        if pieces.axis is None:
            with by_threads(threads):
                operands = staged.read() if workload.splits else whole
                return results, whole, _assess_piece(workload, operands, run, next(iter(pieces)))
    # No file is open when processes begin: each opens its own.
    processes = min(threads, len(pieces))
    assess = partial(_assess_pieces, workload, opened, pieces.shared, threads // processes)
    found: Assessed = [{} for _ in results]
    with Bar(f"verify {workload.name}", pieces.length) as bar:
        for piece, shared in zip(pieces, shared_out(assess, list(pieces), processes), strict=True):
            for accuracies, more in zip(found, shared, strict=True):
                accuracies.update(more)
            bar.show(piece.stop)
    log.info("in %d pieces along axis %s", len(pieces), pieces.axis)
    return results, whole, found


def _assess_pieces(
    workload: Workload,
    opened: Opened,
    shared: frozenset[str],
    threads: int,
    pieces: Sequence[Piece],
) -> Iterator[Assessed]:
    """Yield the accuracies of one piece after another, which have operands in common."""
    with opened() as (staged, run), by_threads(threads):
        known = {name: staged.operand(name) for name in shared}
        for piece in pieces:
            yield _assess_piece(workload, piece.of(staged).read(known), run, piece)


def _assess_piece(workload: Workload, operands: Staged, run: RunFile, piece: Piece) -> Assessed:
    """Return the accuracy of a piece of every result; what it takes is free again afterwards."""
    reference = workload.reference(operands)
    found: Assessed = []
    axes: tuple[str, ...] = ()
    for result in run.results:
        accuracies: dict[str, Accuracy] = {}
        outline = run.outline(result)
        if outline is not None:
            axes = axes or workload.product(operands, outline).axes  # of all results the same
            data = run.read(result, piece.within(axes, outline.shape))
            computed = workload.as_computed(operands, result.plan_words)
            accuracy = workload.assess(
                computed, reference, data, precision_of(result), result.backend
            )
            if operands.has_nonfinite and not np.isfinite(data).any():
                accuracy = replace(accuracy, reference_rows=0)  # nothing was compared
            accuracies[str(piece)] = accuracy
        found.append(accuracies)
    return found


def precision_of(result: Result) -> Precision:
    """Return the precision of a result, with the rounding that it had."""
    return any_precision(result.precision, result.rounding.split(","))


def _record(
    workload: Workload,
    shard: Shard | None,
    outline: Staged,
    result: Result,
    accuracies: Mapping[str, Accuracy],
    ceilings: Ceilings,
) -> Record:
    computed = workload.as_computed(outline, result.plan_words)
    shape = workload.shape(computed, precision_of(result))
    common = {
        "workload": workload.name,
        "kind": workload.kind,
        "implementation": result.implementation,
        "precision": result.precision,
        "algorithm": result.algorithm,
        "device": result.device,
        "backend": result.backend,
        "shard": str(shard or ""),
        "tolerance": workload.case.accepted_error,
        "seed": workload.seed,
        "source_sha256": sources_of(workload, outline),
        "kernel_digest": result.kernel_digest,
        "versions": result.versions,
        "timestamp": result.timestamp,
        **shape.sizes(),
    }
    if not accuracies:
        return Record(**common, verified=False, reason=result.reason)
    return Record(**common, **_speed(result, shape, ceilings), **asdict(worst_of(accuracies)))


def sources_of(workload: Workload, outline: Staged) -> str:
    """Return the SHA-256 of each of the user's files that the workload was staged from.

    A product of another workload is left out: it says when it was made, and so always differs.
    """
    if isinstance(workload.case.data_source, WorkloadInput):
        return ""
    return "; ".join(file_digests(outline.attributes).values())


def _speed(result: Result, shape: Shape, ceilings: Ceilings) -> dict[str, Any]:
    """Return the times, and the rates of the nominal work at the median time."""
    if not result.time_us_p50:
        return {}
    precision = any_precision(result.precision)
    limit = None
    # Jobs of one study may run on GPUs of several models. No rate of int8 is measured.
    if ceilings.device == result.device and not precision.moduli:
        limit = ceilings.limit_time_s(shape.flops, shape.bytes_moved, precision)
    readings = {name: getattr(result, name) for name in READINGS}
    return readings | shape.rates(result.time_us_p50, limit)
