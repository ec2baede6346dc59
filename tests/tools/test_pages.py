"""Generated pages: in step with code and records, tables without records, docstrings as shown."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest
from argand import PRECISIONS

from benchmarks.harness.recorded import read_rows, timed_rows
from tools.docs.blocks import fill_tables
from tools.docs.file_tables import FILE_TABLES
from tools.docs.pages import COMMAND, DATA, ROOT, generated
from tools.docs.product_tables import BATCHED, LARGE, SMALL
from tools.docs.reference import docstring_markdown
from workflow.records import BenchmarkRecord, Record


@pytest.fixture(scope="module")
def files() -> Mapping[Path, str]:
    return generated()


def test_generated_files_are_in_step(files: Mapping[Path, str]) -> None:
    diffs = [
        difflib.unified_diff(
            path.read_text(encoding="utf-8").splitlines(keepends=True),
            expected.splitlines(keepends=True), f"{path.relative_to(ROOT)} now", "generated",
        )
        for path, expected in files.items()
    ]  # fmt: skip
    diff = "".join(chain.from_iterable(diffs))
    assert not diff, f"run {COMMAND}\n{diff}"


def test_every_record_is_on_a_page(files: Mapping[Path, str]) -> None:
    pages = [path for path in files if path.suffix == ".md"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [path.name for path in sorted(DATA.iterdir()) if path.name not in text] == []


def test_commands_that_recorded_tables_are_there() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/tables").iterdir())
    modules = set(re.findall(r"python -m ([\w.]+)", text))
    assert modules
    assert [name for name in sorted(modules) if find_spec(name) is None] == []


def test_every_folder_of_the_package_has_a_page() -> None:
    pages = sorted((ROOT / "docs/kernels/files").iterdir())
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    listed = (ROOT / "docs/kernels/files.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- table: (\S+) -->", text)) == sorted(FILE_TABLES)
    assert [page.name for page in pages if f"(files/{page.name})" not in listed] == []


def test_every_file_of_the_package_says_what_it_is() -> None:
    rows = [line for table in FILE_TABLES.values() for line in table(Path()).splitlines()[2:]]
    assert len([row for row in rows if row]) > 500
    assert [row for row in rows if row and not row.rstrip(" |").endswith(".")] == []


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


def test_only_what_is_not_verified_has_a_verdict(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "workload,verdict,verified,worst_bound,bound,ratio\n"
        "a,verified,true,1e-3,1e-6,2\nb,suspect,false,1e-3,1e-6,0.5\nc,,False,,,\n"
    )
    a, b, c = read_rows(tmp_path / "x.csv")
    assert [row["verdict"] for row in (a, b, c)] == [None, "suspect", "not verified"]
    assert [row["verified"] for row in (a, b, c)] == ["True", "False", "False"]
    assert (a["worst_bound"], a["bound"], a["ratio"]) == (1e-3, 1e-6, 2)
    timed = [row | {"time_us_p50": 1.0} for row in (a, b, c)]
    assert timed_rows([*timed, a | {"time_us_p50": None}]) == timed[:1]


def test_columns_that_an_older_file_lacks_are_gaps(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("workload,tflops\nw,2.5\n")
    (row,) = read_rows(tmp_path / "x.csv")
    assert (row["workload"], row["tflops"], row["clock_mhz"]) == ("w", 2.5, None)
    (tmp_path / "x.csv").write_text("workload,bound\nw,2.5\n")
    (row,) = read_rows(tmp_path / "x.csv")
    assert row["bound"] is None


def products(folder: Path, *rows: dict[str, str], name: str = LARGE) -> Path:
    """A folder with a benchmark's CSV of these rows."""
    columns = BenchmarkRecord.columns_in_order()
    lines = [",".join(columns), *(",".join(r.get(name, "") for name in columns) for r in rows)]
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder


MEASURED = {
    "workload": "w", "implementation": "argand", "precision": "tf32", "time_us_p50": "1400",
    "input": "complex64", "output": "complex64", "verified": "True",
}  # fmt: skip


def test_without_its_file_a_page_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="h200-gemm-large"):
        fill_tables(PAGE.format("h200-products-large"), tmp_path)
    with pytest.raises(FileNotFoundError, match="absent"):
        fill_tables(PAGE.format("recorded absent.csv"), tmp_path)


def test_what_was_left_out_is_listed_with_its_reason(tmp_path: Path) -> None:
    absent = {
        "implementation": "triton", "precision": "tf32", "input": "planar",
        "reason": "not run: no batch",
    }  # fmt: skip
    for name in (BATCHED, SMALL):
        products(tmp_path, MEASURED, name=name)
    data = products(tmp_path, MEASURED, absent | {"workload": "a"}, absent | {"workload": "b"})
    table = fill_tables(PAGE.format("h200-products-left-out"), data)
    assert "| triton | tf32 | planar | no batch | 2 |" in table
    assert "argand" not in table
    wrong = MEASURED | {"verified": "False", "verdict": "wrong"}
    table = fill_tables(PAGE.format("h200-products-left-out"), products(tmp_path, wrong))
    assert "| argand | tf32 | complex64 | wrong | 1 |" in table
    table = fill_tables(PAGE.format("h200-products-left-out"), products(tmp_path, MEASURED))
    assert "Nothing was left out." in table


def test_all_implementations_of_a_product_share_a_line(tmp_path: Path) -> None:
    """A table shows our rate from interleaved operands, wherever their row stands in the file."""
    sizes = {"batch": "1", "m": "8", "n": "8", "k": "8", "limit_fraction": "0.5", "bound": "2e-3"}
    own = MEASURED | sizes | {"tflops": "3", "rel_frobenius": "1e-4"}
    packed = own | {"input": "packed", "time_us_p50": "1200", "tflops": "4"}
    peer = own | {"implementation": "cublas", "time_us_p50": "2000", "tflops": "2"}
    page = PAGE.format("h200-products-large")
    line = "| tf32 | complex64 | 1400 | 1200 | 2000 | 3.00 | 50.0 | 1.00e-04 | 2.00e-03 |"
    for rows in ([own, packed, peer], [packed, peer, own]):
        assert line in fill_tables(page, products(tmp_path, *rows))


STUDY = """workload,implementation,precision,time_us_p50,speedup,worst_bound,verdict,verified,reason
w,argand,fp32,20,1.5,1e-3,verified,true,
w,argand,tf32,,,1e-3,wrong,false,all of it is zero
w,cublas,fp32,30,1,1e-3,verified,true,
"""


def test_a_study_shows_what_is_not_verified(tmp_path: Path) -> None:
    (tmp_path / "h200-study.csv").write_text(STUDY)
    summary = fill_tables(PAGE.format("h200-study"), tmp_path)
    assert "| w | 20.0 (1.50 ×) | wrong |" in summary
    assert "- w, argand at tf32: wrong; all of it is zero" in summary


def test_a_study_without_a_failure_says_so(tmp_path: Path) -> None:
    right = [line for line in STUDY.splitlines() if "wrong" not in line]
    (tmp_path / "h200-study.csv").write_text("\n".join(right) + "\n")
    summary = fill_tables(PAGE.format("h200-study"), tmp_path)
    assert "Every result is verified." in summary
    assert "Not verified" not in summary


def test_where_files_were_recorded(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "device,timestamp,versions\nA,2026-11-22T01:02:03Z,numpy 2\nA,2026-11-21T01:02:03Z,\n"
    )
    (tmp_path / "y.json").write_text(json.dumps({"devices": ["B", "B"]}))
    text = fill_tables(PAGE.format("recorded x.csv y.json"), tmp_path)
    assert "| [x.csv](../data/x.csv) | A | 2026-11-21 and 2026-11-22 |" in text
    assert "| [y.json](../data/y.json) | 2 x B | – |" in text
    assert "With numpy 2." in text


DOCSTRING = """Sum.

Two
lines.

Args:
    a: one,
        or two.
    b: the last.

Raises
no error.
"""
MARKDOWN = """Sum.

Two lines.

Args:

- **a**: one, or two.
- **b**: the last.

Raises no error.
"""


def test_text_after_the_arguments_is_a_paragraph_of_its_own() -> None:
    assert docstring_markdown(DOCSTRING) == MARKDOWN
