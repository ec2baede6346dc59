"""The deliver step: the chosen result as a product file, with its certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from logging import Logger
from pathlib import Path
from typing import Any

from workflow.data import Array, Coordinate, Product, Staged
from workflow.drawn import Stretched
from workflow.implementation import OURS
from workflow.inputs.provenance import MADE_OF
from workflow.inputs.source_attributes import ATTRIBUTES
from workflow.records import Record
from workflow.shards import Shard
from workflow.steps.pieces import pieces_of
from workflow.steps.result_choice import DeliveryError, choose, choose_at
from workflow.storage.products import write_product
from workflow.storage.runs import open_run
from workflow.storage.staged import open_staged
from workflow.workloads.base import Workload


def certificate_of(workload: Workload, chosen: Record, staged: Staged) -> dict[str, Any]:
    """Return a product's certificate: its record, its operands' sources, and what was asked.

    ``parameters`` are the keys of its kind as JSON (`Case.parameters`). Numbers of what was staged,
    such as the seed, stay numbers; its lists and mappings are text.
    """
    certificate = {key: value for key, value in chosen.row().items() if value not in (None, "")}
    certificate |= {
        key: value if key in (ATTRIBUTES, MADE_OF) or isinstance(value, int | float) else str(value)
        for key, value in staged.attributes.items()
    }
    certificate["requested_precision"] = workload.case.precision
    certificate["parameters"] = workload.case.parameters()
    return certificate


def with_coordinates(product: Product, more: Mapping[str, Coordinate]) -> Product:
    """Return the product with further coordinates."""
    return replace(product, coordinates={**product.coordinates, **more})


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
    the product is of: the same, or those of one shard. Raises DeliveryError where the chosen
    precision has no result.
    """
    precision = choose(workload, records).precision
    chosen = choose_at(own, precision)
    with open_staged(staged_path, workload.split_axes, shard) as file, open_run(run_path) as run:
        # The operands' values may describe the result where no axis can be split.
        staged = file.outline if workload.splits else file.read()
        result = run.result(OURS, precision)
        outline = run.outline(result)
        if outline is None:
            raise DeliveryError(f"{workload.name}: {precision} has no result in {run_path}")
        certificate = certificate_of(workload, chosen, staged)
        beside = workload.record_coordinates(records)
        product = with_coordinates(workload.product(staged, outline), beside)
        pieces = pieces_of(workload, staged)

        def stretches() -> Iterator[tuple[int, Array]]:
            for piece in pieces:
                data = run.read(result, piece.within(product.axes, outline.shape))
                yield piece.start, workload.product(piece.of(file).outline, data).data

        name, kind = workload.name, workload.kind
        if pieces.axis is None:
            product = with_coordinates(workload.product(staged, run.read(result)), beside)
            write_product(product_path, product, certificate, workload=name, kind=kind)
        else:
            data, axis = product.data, product.axes.index(pieces.axis)
            along = Stretched(data.shape, data.dtype, axis, pieces.entries, stretches)
            write_product(product_path, product, certificate, along, workload=name, kind=kind)
    proof = "" if chosen.verified else f" NOT PROVED ({chosen.reason})"
    log.info("%s", f"{chosen.precision},{proof} error {chosen.rel_frobenius:.2g}, {product.title}")
