"""Tables of recorded measurements, whose values are texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workflow.tables.readable import Column, markdown_table, number


def text_table(rows: Sequence[Mapping[str, str]], *text: str) -> str:
    """Return a Markdown table of rows of equal keys; columns but those in ``text`` are numbers."""
    columns = [Column(name, name, numeric=name not in text) for name in rows[0]]
    return markdown_table(columns, rows)


def rounded(text: str) -> str:
    """Return a recorded number with three digits; a dash where there is none."""
    return number(float(text)) if text else "–"
