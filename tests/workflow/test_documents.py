"""Tables in README.md and docs/: where they go and what they show; test_schema has them in step."""

from __future__ import annotations

from pathlib import Path

import pytest
from argand import PRECISIONS

from workflow.output.documents import fill_tables, read_rows
from workflow.records import Record

PAGE = "before\n<!-- table: {} -->\nold\n<!-- end -->\nafter\n"


def test_a_table_takes_the_place_of_what_stood_there(tmp_path: Path) -> None:
    once = fill_tables(PAGE.format("precisions"), tmp_path)
    assert once.startswith("before\n<!-- table: precisions -->\n")
    assert once.endswith("<!-- end -->\nafter\n")
    assert "old" not in once
    assert all(f"| {name} |" in once for name in PRECISIONS)
    assert fill_tables(once, tmp_path) == once


def test_an_unknown_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="colours"):
        fill_tables(PAGE.format("colours"), tmp_path)


def test_measured_rows_are_read_with_their_types(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    columns = Record.columns_in_order()
    values = {"workload": "w", "m": "4096", "time_us_p50": "12.5", "verified": "true"}
    path.write_text(
        ",".join(columns) + "\n" + ",".join(values.get(name, "") for name in columns) + "\n"
    )
    (row,) = read_rows(path)
    assert (row["workload"], row["m"], row["time_us_p50"]) == ("w", 4096, 12.5)
    assert row["tflops"] is None
