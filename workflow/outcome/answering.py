"""The answer of a study: its page, Markdown and first figure, of records and of what was drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from workflow.config.case import Case
from workflow.config.file_input import FileInput, products_in
from workflow.figures.answer import draw_answer
from workflow.inputs.source_attributes import datasets_of
from workflow.records import Record
from workflow.steps.result_choice import choices
from workflow.storage.certificates import CAVEATS, read_certificate
from workflow.storage.failures import DataError
from workflow.tables.answer import Answer, answers
from workflow.tables.answer_page import Shown, write_answer
from workflow.tables.readable import scientific
from workflow.workloads.base import Workload

SPEEDS = (
    "How many times as fast as the best peer of its class each answer is; the bar is the interval "
    "of both medians, the colour the precision. Right of 1 is faster; an open dot is of times too "
    "uneven to tell."
)
SWEPT = (
    "Time above, error below, against what was swept; a curve for each implementation and "
    "precision, dashed ones are peers. The pale bar through a time is the interval of its median, "
    "the dotted curve the bound of our error. Times of models, of a GPU's precisions on a CPU, are "
    "not drawn."
)
ACCURACY = (
    "How far each of our results is from fp64 (dot), and what that error is held to (bar at the "
    "end of its line); the pale bar is the worst case."
)
LIMITS = (
    "What fraction of the device's own limit each verified result reached: filled dots are ours, "
    "open markers peers. The limit is the shortest time that the measured ceilings allow, by "
    "operations or by bytes; beyond 100% data stayed in a cache, or a library has a cheaper "
    "algorithm than the nominal count. Models of a GPU's precisions on a CPU are not drawn."
)


@dataclass(frozen=True)
class AnswerFigures:
    """The figures below the answer: of the study, of its sweeps and of its products, by name."""

    limits: Path
    accuracy: Path
    sweeps: Mapping[str, Path]
    products: Mapping[str, Path]


@dataclass(frozen=True)
class AnswerFiles:
    """The files of the answer: the page, the same as Markdown, its first figure."""

    page: Path
    markdown: Path
    figure: Path


def write_answers(
    workloads: Sequence[Workload],
    records: Sequence[Record],
    drawn: AnswerFigures,
    files: AnswerFiles,
    *,
    made: Mapping[str, Path],
    lacking: Mapping[str, str] | None = None,
    failed: Sequence[Mapping[str, Any]] = (),
) -> list[Answer]:
    """Write the answer of a study, each file atomically; returns its rows.

    Args:
        workloads: workloads of the study, in its order.
        records: records of all of them.
        drawn: the figures; of a run that failed those that there are.
        files: what is written.
        made: the product file of each workload that has one; certificates may have caveats.
        lacking: why a workload has no product, by its name, whatever its records say.
        failed: the jobs that failed, rows of `workflow.tables.readable.FAILED`.
    """
    delivered, failures = choices(workloads, records)
    failures |= lacking or {}
    delivered = {name: found for name, found in delivered.items() if name not in failures}
    said = {name: _caveats(path) for name, path in made.items()}
    rows = answers(records, delivered, failures)
    errors = {
        one.workload: f"{one.precision}, error {scientific(one.error)}"
        for one in rows
        if one.precision and one.error is not None
    }
    data = {
        one.name: "; ".join(filter(None, (data_of(one.case, errors), said.get(one.name, ""))))
        for one in workloads
    }
    found = [replace(one, data=data.get(one.workload, "")) for one in rows]
    draw_answer(files.figure, found)
    write_answer(
        found,
        records,
        Shown("Times as fast as the best peer", SPEEDS, files.figure),
        _figures(workloads, drawn, delivered),
        page=files.page,
        markdown=files.markdown,
        failed=failed,
        tolerances={
            one.name: one.case.accepted_error for one in workloads if one.case.precision == "auto"
        },
    )
    return found


def data_of(case: Case, errors: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the files, arrays and products that a workload is computed of; empty for drawn data.

    ``errors`` are those of products, by workload; errors of what is made of them leave them out.
    """
    source, circuit = case.data_source, getattr(case, "circuit", None)
    found = []
    if isinstance(source, FileInput) and source.file is not None:
        arrays = [path for paths in datasets_of(source).values() for path in paths]
        found.append(f"{', '.join(dict.fromkeys(arrays))} of {source.file}")
    for name in dict.fromkeys(products_in(source).values()):
        beside = f" ({errors[name]})" if name in errors else ""
        found.append(f"the product of {name}{beside}")
    if circuit is not None and circuit.file is not None:
        found.append(str(circuit.file))
    return "; ".join(found)


def _caveats(path: Path) -> str:
    """Return what a product's certificate says of its data, or of a damaged one what is wrong."""
    try:
        return str(read_certificate(path).get(CAVEATS, ""))
    except DataError as error:
        return str(error)


def _figures(
    workloads: Sequence[Workload], drawn: AnswerFigures, delivered: Mapping[str, str]
) -> list[Shown]:
    """Return the figures below the answer: of sweeps, of errors, of limits, of each product."""
    captions = {workload.name: workload.caption for workload in workloads}
    return [
        *(Shown(f"{name}, swept", SWEPT, path) for name, path in drawn.sweeps.items()),
        Shown("Errors and their bounds", ACCURACY, drawn.accuracy),
        Shown("Limits", LIMITS, drawn.limits),
        *(
            Shown(
                f"{name} at {delivered[name]}",
                f"{captions[name]} The numbers, with axes, units and a certificate, are in "
                f"products/{name}.h5 beside this page.",
                path,
            )
            for name, path in drawn.products.items()
            if name in delivered
        ),
    ]
