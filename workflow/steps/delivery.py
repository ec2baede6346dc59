"""The deliver step: which result is the answer, and its product file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from logging import Logger
from pathlib import Path
from typing import Any

from workflow.config.case import Case
from workflow.data import Array, Staged
from workflow.records import Record
from workflow.shards import Shard
from workflow.steps.pieces import pieces_of
from workflow.storage.datasets import open_run
from workflow.storage.products import Slabs, write_product
from workflow.storage.staged import open_staged
from workflow.workloads.base import Workload


class DeliveryError(RuntimeError):
    """No result is good enough to be delivered."""


def choose(workload: Workload, records: list[Record]) -> Record:
    """The record whose result becomes the product.

    With ``precision: auto`` the fastest of ours that verified, with an error of at most the
    workload's tolerance. Otherwise ours at the precision asked for, if it verified, or if only its
    bound is too wide and the workload allows that. Raises DeliveryError, with what there is, where
    there is none.
    """
    case = workload.case
    ours = [record for record in records if record.implementation == "argand"]
    if case.precision != "auto":
        ours = [record for record in ours if record.precision == case.precision]
    good = [record for record in ours if _fits(case, record)]
    if not good:
        found = "; ".join(f"{record.precision}: {_state(record)}" for record in ours)
        raise DeliveryError(
            f"{workload.name}: precision {case.precision} within tolerance {case.tolerance:g} "
            f"is not to be had ({found or 'nothing was computed'}){_hint(case, ours)}"
        )
    return min(good, key=lambda record: record.time_us_p50 or 0.0)


def _fits(case: Case, record: Record) -> bool:
    if record.rel_frobenius is None or record.error_limit is None:
        return False
    if case.precision == "auto":
        return record.verified and record.error_limit <= case.tolerance
    return record.verified or (case.allow_unproven and record.verdict == "unproven")


def _hint(case: Case, ours: list[Record]) -> str:
    """What to do where only a bound is too wide."""
    if not any(record.verdict == "unproven" for record in ours):
        return ""
    explicit = "" if case.precision != "auto" else "name a precision and "
    return (
        f". A more accurate precision may be provable; to have an unproven result, {explicit}"
        "set allow_unproven: true"
    )


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
    limit = record.error_limit
    return f"error {record.rel_frobenius:.2g}, at most {limit:.2g}"


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
    with open_staged(staged_path, workload.split_axes, shard) as file, open_run(run_path) as run:
        # Without an axis to split the operands' values may describe the result.
        staged = file.outline if workload.splits else file.read()
        result = run.result("argand", precision)
        outline = run.outline(result)
        if outline is None:
            raise DeliveryError(f"{workload.name}: {precision} has no result in {run_path}")
        certificate = certificate_of(workload, chosen, staged)
        product = workload.product(staged, outline)
        pieces = pieces_of(workload, staged)

        def slabs() -> Iterator[tuple[int, Array]]:
            for piece in pieces:
                data = run.read(result, piece.within(product.axes, outline.shape))
                yield piece.start, workload.product(piece.of(file).outline, data).data

        name, kind = workload.name, workload.kind
        if pieces.axis is None:
            product = workload.product(staged, run.read(result))
            write_product(product_path, product, certificate, workload=name, kind=kind)
        else:
            along = Slabs(pieces.axis, pieces.step, slabs)
            write_product(product_path, product, certificate, along, workload=name, kind=kind)
    proof = "" if chosen.verified else f" NOT PROVED ({chosen.reason})"
    log.info("%s", f"{chosen.precision},{proof} error {chosen.rel_frobenius:.2g}, {product.title}")
