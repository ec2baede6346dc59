"""The deliver step: which result is the answer, and its product file."""

from __future__ import annotations

from dataclasses import asdict
from logging import Logger
from pathlib import Path

from workflow.records import Record
from workflow.storage.datasets import read_result, read_staged
from workflow.storage.products import write_product
from workflow.workloads.base import Workload


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


def _state(record: Record) -> str:
    if not record.verified:
        return f"not verified, {record.reason}"
    return f"error {record.rel_frobenius:.2g}"


def deliver(
    workload: Workload,
    staged_path: Path,
    run_path: Path,
    records: list[Record],
    product_path: Path,
    log: Logger,
) -> None:
    """Write the product file with the chosen result and its certificate."""
    chosen = choose(workload, records)
    staged = read_staged(staged_path)
    result = read_result(run_path, "argand", chosen.precision)
    if result.data is None:
        raise DeliveryError(f"{workload.name}: {chosen.precision} has no result in {run_path}")
    certificate = {key: value for key, value in asdict(chosen).items() if value not in (None, "")}
    certificate |= {key: str(value) for key, value in staged.attributes.items()}
    certificate["requested_precision"] = workload.case.precision
    product = workload.product(staged, result.data)
    write_product(product_path, product, certificate, workload=workload.name, kind=workload.kind)
    log.info("%s", f"{chosen.precision}, error {chosen.rel_frobenius:.2g}, {product.title}")
