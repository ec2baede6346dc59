"""The answer of a study: its page, Markdown and first figure, of records and of what was drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow.figures.answer import draw_answer
from workflow.records import Record
from workflow.steps.delivery import choices
from workflow.tables.answer import Answer, answers
from workflow.tables.answer_page import Shown, write_answer
from workflow.workloads.base import Workload

SPEEDS = (
    "How many times as fast as the best peer of its class each answer is; the bar is the interval "
    "of both medians, the colour the precision. Right of 1 is faster."
)
LIMITS = (
    "What fraction of the device's own limit each verified result reached. The limit is the "
    "shortest time that the measured ceilings allow, by operations or by bytes."
)


@dataclass(frozen=True)
class AnswerFiles:
    """Where the answer goes: the page, the same as Markdown, its first figure."""

    page: Path
    markdown: Path
    figure: Path


def write_answers(
    workloads: Sequence[Workload],
    records: Sequence[Record],
    limits: Path,
    pictures: Mapping[str, Path],
    files: AnswerFiles,
    *,
    lacking: Mapping[str, str] | None = None,
    failed: Sequence[Mapping[str, Any]] = (),
) -> list[Answer]:
    """Write the answer of a study, each file atomically; returns its rows.

    Args:
        workloads: of the study, in its order.
        records: of all of them.
        limits: the figure of the limits.
        pictures: the drawn products, by workload; those of a run that failed may be fewer.
        files: what is written.
        lacking: by workload why it has no product, whatever its records say.
        failed: the jobs that failed, rows of `workflow.tables.readable.FAILED`.
    """
    delivered, failures = choices(workloads, records)
    failures |= lacking or {}
    delivered = {name: found for name, found in delivered.items() if name not in failures}
    found = answers(records, delivered, failures)
    draw_answer(files.figure, found)
    drawn = [
        Shown(
            f"{name} at {delivered[name]}",
            "The product as people of its field are used to seeing it. The numbers, with axes, "
            f"units and a certificate, are in products/{name}.h5 beside this page.",
            path,
        )
        for name, path in pictures.items()
        if name in delivered
    ]
    write_answer(
        found,
        records,
        Shown("Times as fast as the best peer", SPEEDS, files.figure),
        [Shown("Limits", LIMITS, limits), *drawn],
        page=files.page,
        markdown=files.markdown,
        failed=failed,
    )
    return found
