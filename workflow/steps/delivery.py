"""The deliver step: which result is the answer, and its product file."""

from __future__ import annotations

from dataclasses import asdict
from logging import Logger
from pathlib import Path
from typing import Any

from workflow.methods.shards import Shard
from workflow.records import Record
from workflow.storage.datasets import read_result
from workflow.storage.products import write_product
from workflow.storage.staged import read_staged
from workflow.workloads.base import Staged, Workload


class DeliveryError(RuntimeError):
    """No result is good enough to be delivered."""


def choose(workload: Workload, records: list[Record]) -> Record:
    """The record whose result becomes the product.

    With ``precision: auto`` the fastest of ours that verified within the workload's tolerance,
    otherwise ours at the precision asked for, if it verified. Raises DeliveryError, with what there
    is, where there is none.
    """
    case = workload.case
    ours = [record for record in records if record.implementation == "argand"]
    if case.precision != "auto":
        ours = [record for record in ours if record.precision == case.precision]
    good = [
        record
        for record in ours
        if record.verified
        and record.rel_frobenius is not None
        and (case.precision != "auto" or record.rel_frobenius <= case.tolerance)
    ]
    if not good:
        found = "; ".join(f"{record.precision}: {_state(record)}" for record in ours)
        raise DeliveryError(
            f"{workload.name}: precision {case.precision} within tolerance {case.tolerance:g} "
            f"is not to be had ({found or 'nothing was computed'})"
        )
    return min(good, key=lambda record: record.time_us_p50 or 0.0)


def choose_at(records: list[Record], precision: str) -> Record:
    """Our record at a precision."""
    return next(r for r in records if r.implementation == "argand" and r.precision == precision)


def certificate_of(workload: Workload, chosen: Record, staged: Staged) -> dict[str, Any]:
    """What a product says of itself: its record, where its operands come from, what was asked."""
    certificate = {key: value for key, value in asdict(chosen).items() if value not in (None, "")}
    certificate |= {key: str(value) for key, value in staged.attributes.items()}
    certificate["requested_precision"] = workload.case.precision
    return certificate


def _state(record: Record) -> str:
    if not record.verified:
        return f"not verified, {record.reason}"
    return f"error {record.rel_frobenius:.2g}"


def deliver(
    workload: Workload,
    shard: Shard | None,
    staged_path: Path,
    run_path: Path,
    records: list[Record],
    own: list[Record],
    product_path: Path,
    log: Logger,
) -> None:
    """Write the product file with the chosen result and its certificate.

    ``records`` are those of the whole workload, which decide the precision, ``own`` those of what
    the product is of: the same, or those of one shard.
    """
    precision = choose(workload, records).precision
    chosen = choose_at(own, precision)
    staged = read_staged(staged_path, workload.splits, shard)
    result = read_result(run_path, "argand", precision)
    if result.data is None:
        raise DeliveryError(f"{workload.name}: {precision} has no result in {run_path}")
    certificate = certificate_of(workload, chosen, staged)
    product = workload.product(staged, result.data)
    write_product(product_path, product, certificate, workload=workload.name, kind=workload.kind)
    log.info("%s", f"{chosen.precision}, error {chosen.rel_frobenius:.2g}, {product.title}")
