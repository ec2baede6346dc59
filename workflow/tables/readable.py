"""Tables for people: chosen columns, three significant digits, Markdown and HTML."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow.accuracy.measures import Measure, every_measure

Row = Mapping[str, Any]
Section = (
    tuple[str, str, Sequence["Column"], Sequence[Row]]
    | tuple[str, str, Sequence["Column"], Sequence[Row], str]
)
"""Heading, explanation, columns and rows; and HTML that stands below the table."""
TEMPLATE = Path(__file__).parents[1] / "report" / "table.html"
MAX_CARD_COLUMNS = 12
"""Columns of a table whose rows are cards on a narrow screen; wider tables are scrolled there."""


def number(value: float, *, scientific: bool = False) -> str:
    """Return three significant digits: plain from 0.001 to a million, else with an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if scientific or not 1e-3 <= abs(value) < 999_500:
        return f"{value:.2e}"
    decimals = 2 - math.floor(math.log10(abs(float(f"{value:.2e}"))))
    return f"{round(value, decimals):.{max(0, decimals)}f}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else str(value)


def scientific(value: Any) -> str:
    """Return a number with three digits and a power of ten."""
    return number(value, scientific=True)


def _settled(value: Any) -> str:
    return "–" if value else "unsettled"


def percent(value: Any) -> str:
    """Return a fraction in percent."""
    return number(100 * value)


@dataclass(frozen=True)
class Column:
    """One column: the field it shows, its heading with the unit, and how a value is written.

    ``words`` says that it holds a sentence, which a page breaks into lines.
    """

    field: str
    heading: str
    write: Callable[[Any], str] = _text
    numeric: bool = False
    words: bool = False

    def show(self, row: Row) -> str:
        """Return the text of the cell; a dash for what does not apply."""
        value = row.get(self.field)  # recordings of earlier versions lack newer columns
        return "–" if value is None or value == "" else self.write(value)


def _number(field: str, heading: str, write: Callable[[Any], str] = _text) -> Column:
    return Column(field, heading, write, numeric=True)


def _measure_column(measure: Measure) -> Column:
    """Return the column of a measure that one kind has."""

    def write(value: Any) -> str:
        return number(measure.shown(value), scientific=measure.scientific)

    return _number(measure.column, measure.heading({}), write)


_WHO = (
    Column("workload", "workload"),
    Column("implementation", "implementation"),
    Column("precision", "precision"),
)
_VERDICT = (
    Column("verified", "verified"),
    Column("verdict", "verdict"),
    Column("reason", "reason"),
)
_BOUND = (
    _number("rel_frobenius", "error", scientific),
    _number("bound", "bound", scientific),
    _number("ratio", "bound / error"),
)

PERFORMANCE = (
    *_WHO,
    _number("shards", "shards"),
    _number("chunks", "chunks"),
    _number("time_us_p50", "time (µs)"),
    _number("time_us_low", "from (µs)"),
    _number("time_us_high", "to (µs)"),
    Column("settled", "settled", _settled),
    _number("predicted_us", "predicted (µs)"),
    _number("tflops", "TFLOP/s"),
    _number("gbytes_per_s", "GB/s"),
    _number("limit_fraction", "of limit (%)", percent),
    _number("speedup", "speedup (×)"),
    *_BOUND,
    *_VERDICT,
    _number("load", "load (cores)"),
    _number("clock_mhz", "clock (MHz)"),
    Column("throttling", "throttled by"),
    Column("algorithm", "algorithm"),
    Column("device", "device"),
)
ACCURACY = (
    *_WHO,
    *_BOUND,
    _number("worst_bound", "worst-case bound", scientific),
    _number("error_limit", "error at most", scientific),
    _number("componentwise_re", "componentwise, real", scientific),
    _number("componentwise_im", "componentwise, imag.", scientific),
    _number("max_row_error", "largest row error", scientific),
    *(_measure_column(measure) for measure in every_measure().values() if not measure.text),
    _number("lines_out_of_range", "lines out of range"),
    _number("largest_spread", "largest spread", scientific),
    _number("tolerance", "tolerance", scientific),
    *_VERDICT,
    Column("reference", "reference"),
    _number("reference_rows", "reference rows"),
)
FAILED = (
    Column("workload", "workload"),
    Column("step", "step"),
    Column("reason", "reason", words=True),
    Column("log", "log"),
)
GROWTH = (
    Column("precision", "precision"),
    Column("part", "part"),
    _number("slope", "slope"),
    Column("grade", "grade"),
    _number("k_first", "from k"),
    _number("error_first", "error there", scientific),
    _number("k_last", "to k"),
    _number("error_last", "error there", scientific),
)


def used(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Return the columns that say something in at least one row (all of them without rows)."""
    return [c for c in columns if not rows or any(c.show(row) != "–" for row in rows)]


def markdown_table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Return a pipe table; columns that no row fills are left out."""
    columns = used(columns, rows)
    lines = [[column.heading for column in columns]]
    lines.append(["---:" if column.numeric else "---" for column in columns])
    lines += [[_cell(column.show(row)) for column in columns] for row in rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    """Return text as Markdown shows it: no column, tag or link begins in it."""
    text = re.sub(r"([\\|<]|(?<=\])\()", r"\\\1", text)
    return " ".join(text.splitlines())


def html_page(title: str, sections: Sequence[Section], banner: str = "") -> str:
    """Return one page that needs nothing else: a search box, and tables that sort by a click.

    A ``banner`` stands above the tables.
    """
    template = TEMPLATE.read_text(encoding="utf-8")
    body = html_banner(banner) + "".join(_section(*section) for section in sections)
    return template.replace("@TITLE@", html.escape(title)).replace("@SECTIONS@", body)


def html_banner(banner: str) -> str:
    """Return a banner as HTML; nothing for an empty one."""
    return f'<p class="banner" role="note">{html.escape(banner)}</p>' if banner else ""


def _section(
    heading: str, note: str, columns: Sequence[Column], rows: Sequence[Row], below: str = ""
) -> str:
    columns = used(columns, rows)
    cards = ' class="cards"' if len(columns) <= MAX_CARD_COLUMNS else ""
    head = "".join(
        f'<th scope="col" aria-sort="none"{_class(c)}><button type="button">'
        f"{html.escape(c.heading)}</button></th>"
        for c in columns
    )
    title = f"<h2>{html.escape(heading)}</h2>" if heading else ""
    body = "".join(_html_row(columns, row) for row in rows)
    return (
        f"<section>{title}<p>{html.escape(note)}</p>"
        f'<div class="scroll" tabindex="0"><table{cards}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{below}</section>"
    )


def _html_row(columns: Sequence[Column], row: Row) -> str:
    failed = ' class="failed"' if row.get("verified") is False else ""
    cells = [
        f"{_class(c)} data-value={_attribute(row.get(c.field))}>{_html_text(c, row)}"
        for c in columns
    ]
    named = f'<th scope="row"{cells[0]}</th>'
    return f"<tr{failed}>{named}{''.join(f'<td{cell}</td>' for cell in cells[1:])}</tr>"


def _html_text(column: Column, row: Row) -> str:
    """Return the HTML of a cell; a sentence is not broken within an exponent, such as 1.36e-02."""
    text = html.escape(column.show(row))
    return re.sub(r"\d[\d.]*e-\d+", r"<span>\g<0></span>", text) if column.words else text


def _class(column: Column) -> str:
    kind = "number" if column.numeric else "words" if column.words else ""
    return f' class="{kind}"' if kind else ""


def _attribute(value: Any) -> str:
    """Return the full value to sort by, quoted.

    It is empty where there is none or it has no place (NaN).
    """
    absent = value is None or value != value
    text = "" if absent else value if isinstance(value, str) else json.dumps(value)
    return f'"{html.escape(text)}"'
