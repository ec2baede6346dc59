"""The gather step: the products of a workload's shards as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from logging import Logger
from pathlib import Path
from typing import Any

from workflow.counted import counted
from workflow.data import blank
from workflow.records import Record
from workflow.shards import Shard, choose_axis
from workflow.steps.delivery import certificate_of, with_coordinates
from workflow.steps.result_choice import DeliveryError, choose
from workflow.storage.certificates import CERTIFICATE_KEYS, read_certificate
from workflow.storage.gathered import source_of
from workflow.storage.products import read_outline, write_gathered
from workflow.storage.staged import read_staged_shape
from workflow.workloads.base import Workload

DETAILS = ("time_us_p50", "end_to_end_us", *CERTIFICATE_KEYS)
"""Attributes of each shard in the certificate of the whole."""


def gather(
    workload: Workload,
    staged_path: Path,
    files: Mapping[Shard, Path],
    records: list[Record],
    product_path: Path,
    log: Logger,
) -> None:
    """Write the product file of the whole workload, over the shards' own.

    ``records`` are those of the whole. Its certificate has, for each shard, the file with its
    SHA-256, its stretch of the axis, and what the shard's own certificate says. Raises
    DeliveryError for a shard at another precision than the whole, DataError for a damaged one.
    """
    staged = read_staged_shape(staged_path)
    lengths = staged.axis_lengths()
    axis = choose_axis(workload.split_axes(staged.axes), lengths, len(files))
    chosen = choose(workload, records)
    sources, details = [], {}
    for shard, path in files.items():
        part = shard.within(lengths[axis])
        source = source_of(path, product_path.parent, part.start, part.stop)
        own = read_certificate(path)
        if own["precision"] != chosen.precision:
            raise DeliveryError(
                f"{path} must be at {chosen.precision}, which all shards together call for, got "
                f"{own['precision']}; delete it and run again"
            )
        sources.append(source)
        details[str(shard)] = asdict(source) | {key: own[key] for key in DETAILS if key in own}
    certificate: dict[str, Any] = certificate_of(workload, chosen, staged)
    certificate["shards"] = {"axis": axis, "count": len(files), "each": details}
    first = read_outline(next(iter(files.values())))
    shape = list(first.data.shape)
    shape[first.axes.index(axis)] = lengths[axis]
    product = with_coordinates(
        workload.product(staged, blank(tuple(shape), first.data.dtype)),
        workload.record_coordinates(records),
    )
    write_gathered(
        product_path, product, certificate, sources, workload=workload.name, kind=workload.kind
    )
    log.info("%s", f"{counted(len(files), 'shard')} along {axis}, {product.title}")
