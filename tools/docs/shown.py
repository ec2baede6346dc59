"""The columns that pages show of recorded measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workflow.tables.readable import PERFORMANCE, Column, markdown_table, number

_HIDDEN = ("verified", "algorithm", "device", "load", "clock_mhz", "throttling")


def shown_columns() -> list[Column]:
    """Return the columns of the performance table that a page has room for."""
    return [column for column in PERFORMANCE if column.field not in _HIDDEN]


def text_table(rows: Sequence[Mapping[str, str]], *text: str) -> str:
    """Return a Markdown table of rows of equal keys; columns but those in ``text`` are numbers."""
    columns = [Column(name, name, numeric=name not in text) for name in rows[0]]
    return markdown_table(columns, rows)


def rounded(text: str) -> str:
    """Return a recorded number with three digits; a dash where there is none."""
    return number(float(text)) if text else "–"
