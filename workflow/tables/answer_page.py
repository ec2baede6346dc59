"""The page of a study that begins with the answer: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workflow.counted import counted
from workflow.records import Record
from workflow.storage.files import atomic_text
from workflow.storage.run_folder import study_in
from workflow.tables.answer import ANSWER, ANSWER_TEXT, Answer, answer_rows
from workflow.tables.precisions import precisions_columns, precisions_rows, precisions_text
from workflow.tables.ranking import complete, ordered
from workflow.tables.readable import (
    FAILED,
    PERFORMANCE,
    Section,
    html_banner,
    html_page,
    markdown_table,
)
from workflow.tables.study import FAILED_TEXT, PERFORMANCE_TEXT
from workflow.tables.unsettled import unsettled_banner


class Shown(NamedTuple):
    """A figure of the page: its heading, what one sees in it, and its SVG file."""

    heading: str
    caption: str
    path: Path


def write_answer(
    answers: Sequence[Answer],
    records: Sequence[Record],
    first: Shown,
    others: Sequence[Shown],
    *,
    page: Path,
    markdown: Path,
    failed: Sequence[Mapping[str, Any]] = (),
    tolerances: Mapping[str, float] | None = None,
) -> None:
    """Write the answers as a page with figures and all rows, and as Markdown, each atomically.

    ``first`` stands below the answers where one has a peer, then what ``failed`` (rows of
    `readable.FAILED`), then what each precision gives, ``others`` below the table of all rows.
    ``tolerances`` are those of the workloads that leave the choice of a precision.
    """
    rows, completed = answer_rows(answers), ordered(complete(records))
    banner, about = unsettled_banner(completed), _about(answers, completed, failed)
    noted = f"**{banner}**\n\n" if banner else ""
    text = f"# Answers\n\n{about}\n\n{markdown_table(ANSWER, rows)}\n{noted}{ANSWER_TEXT}\n"
    failures: list[Section] = []
    if failed:
        failures = [("Failed", FAILED_TEXT, FAILED, failed)]
        text += f"\n## Failed\n\n{FAILED_TEXT}\n\n{markdown_table(FAILED, failed)}"
    delivered = {one.workload: one.precision for one in answers if one.precision}
    each = precisions_rows(completed, delivered, tolerances or {})
    columns, note = precisions_columns(completed), precisions_text(completed)
    text += f"\n## Every precision\n\n{note}\n\n{markdown_table(columns, each)}"
    atomic_text(markdown, text)
    compared = any(answer.speedup is not None for answer in answers)
    below = f"{html_banner(banner)}<p>{html.escape(ANSWER_TEXT)}</p>"
    sections: list[Section] = [
        ("Answers", about, ANSWER, rows, below + (_figure(first) if compared else "")),
        *failures,
        ("Every precision", note, columns, each),
        (
            "All rows", PERFORMANCE_TEXT, PERFORMANCE, [row.row() for row in completed],
            "".join(map(_figure, others)),
        ),
    ]  # fmt: skip
    atomic_text(page, html_page(f"Study {study_in(page.parent)}: answers", sections))


def _about(
    answers: Sequence[Answer], records: Sequence[Record], failed: Sequence[Mapping[str, Any]]
) -> str:
    """Return where it was computed, how much of it was proved, and whether something is missing."""
    devices = ", ".join(dict.fromkeys(record.device for record in records if record.device))
    proved = sum(answer.verified for answer in answers)
    rows = sum(record.verified for record in records)
    missing = f" {counted(len(failed), 'step')} failed or did not run: see Failed." * bool(failed)
    return (
        f"{proved} of {len(answers)} answers and {rows} of {len(records)} results verified"
        f"{f', on {devices}' if devices else ''}.{missing}"
    )


def _figure(shown: Shown) -> str:
    """Return the figure as an image: identifiers of one SVG are then not those of another."""
    data = base64.b64encode(shown.path.read_bytes()).decode("ascii")
    heading, caption = html.escape(shown.heading), html.escape(shown.caption)
    return (
        f'<figure><h2>{heading}</h2><img alt="{heading}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )
