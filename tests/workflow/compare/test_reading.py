"""Tables of a comparison are read from untrusted files."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from compared_tables import ROW, write_table

from tests.covers import EXHAUSTIVE
from workflow.compare.reading import TableError, read_rows
from workflow.storage.checked_json import write_object
from workflow.storage.files import sha256_of


def refused(path: Path) -> str:
    with pytest.raises(TableError) as raised:
        read_rows(path)
    text = str(raised.value)
    assert str(path) in text
    assert text.isprintable()
    return text


def test_a_folder_and_its_table_are_the_same(tmp_path: Path) -> None:
    table = write_table(tmp_path / "tables" / "performance.csv", [ROW])
    assert read_rows(tmp_path) == read_rows(table)
    row = read_rows(table)["w", "argand", "fp32", ""]
    assert row.times is not None
    assert (row.times.p20, row.times.p50, row.times.p80, row.times.iterations) == (9, 10, 12, 20)
    assert row.factors["size"] == "kind=gemm m=8 n=9 k=10"
    assert row.versions == {"numpy": "2.4.6", "argand": "0.1.0"}
    by_spreadsheet = tmp_path / "saved.csv"
    by_spreadsheet.write_text(table.read_text(), encoding="utf-8-sig", newline="\r\n")
    assert read_rows(by_spreadsheet) == read_rows(table)


def test_shards_of_a_folder_are_rows_of_their_own(tmp_path: Path) -> None:
    write_table(tmp_path / "tables" / "performance.csv", [ROW])
    write_table(tmp_path / "tables" / "shards.csv", [ROW | {"shard": "1-of-2"}])
    assert [key[3] for key in read_rows(tmp_path)] == ["", "1-of-2"]


def test_a_folder_is_checked_against_its_manifest(tmp_path: Path) -> None:
    table = write_table(tmp_path / "tables" / "performance.csv", [ROW, ROW | {"precision": "fp64"}])
    manifest = tmp_path / "manifest.json"
    write_object(manifest, {"files": {"results/tables/performance.csv": sha256_of(table)}})
    assert len(read_rows(tmp_path)) == 2
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(TableError, match=r"performance\.csv: it is not the table that .* lists"):
        read_rows(tmp_path)
    assert len(read_rows(table)) == 1  # alone nothing shows that a row is missing
    manifest.write_text(manifest.read_text().replace("performance", "performanca"))
    with pytest.raises(TableError, match=r"manifest\.json: damaged"):
        read_rows(tmp_path)


def test_a_table_of_an_earlier_version_has_fewer_columns(tmp_path: Path, root: Path) -> None:
    with (root / "docs" / "data" / "h200-study.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    earlier = tmp_path / "performance.csv"
    with earlier.open("w", newline="") as file:
        names = [name for name in rows[0] if name not in ("seed", "backend", "settled")]
        table = csv.DictWriter(file, names, extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    found = read_rows(earlier)
    assert len(found) == len(rows)
    assert {row.factors["seed"] for row in found.values()} == {""}


def test_files_that_are_not_tables(tmp_path: Path) -> None:
    assert "there must be a results folder" in refused(tmp_path / "absent.csv")
    assert "there must be a results folder" in refused(tmp_path).replace("/tables", "")
    os.mkfifo(tmp_path / "pipe.csv")
    assert "there must be a results folder" in refused(tmp_path / "pipe.csv")
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    assert "it has no columns workload" in refused(other)
    other.write_bytes(b"\xff\xfe\0")
    assert "no text" in refused(other)
    other.write_text("")
    assert "it has no columns" in refused(other)
    with other.open("wb") as file:
        file.truncate(1 << 40)  # a hole, of which nothing is read
    assert "larger than any" in refused(other)
    assert "has no rows" in refused(write_table(tmp_path / "empty.csv", []))


def test_a_table_that_is_cut_anywhere(tmp_path: Path) -> None:
    """A cut between two rows is a shorter table, every other one an error."""
    whole = write_table(tmp_path / "whole.csv", [ROW, ROW | {"precision": "fp64"}]).read_bytes()
    path = tmp_path / "cut.csv"
    ends = {place for i, byte in enumerate(whole) if byte == ord(b"\n") for place in (i, i + 1)}
    for length in sorted({*range(0, len(whole), 1 if EXHAUSTIVE else 9), *ends} - {len(whole)}):
        path.write_bytes(whole[:length])
        if whole[:length].count(b"\n") == 2 and whole[:length].endswith(b"\n"):
            assert len(read_rows(path)) == 1
        else:
            refused(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time_us_p50": "fast"}, "time_us_p50 must be a number, got 'fast'"),
        ({"time_us_p50": "nan"}, "must be finite and positive"),
        ({"time_us_p50": "inf"}, "must be finite and positive"),
        ({"time_us_p50": "-1"}, "must be finite and positive"),
        ({"time_us_p50": "0"}, "must be finite and positive"),
        ({"time_us_p80": "5"}, "must not fall"),
        ({"rel_frobenius": "-1e-7"}, "must be finite and not negative"),
        ({"rel_frobenius": "nan"}, "must be finite and not negative"),
        ({"iterations": "1e999"}, "must be finite"),
        ({"verified": "maybe"}, "verified must be true or false"),
        ({"precision": "fp8"}, "precision must be one of"),
        ({"workload": ""}, "must be names"),
    ],
)
def test_a_cell_that_no_run_writes(change: dict[str, str], message: str, tmp_path: Path) -> None:
    text = refused(write_table(tmp_path / "t.csv", [ROW | change]))
    assert "line 2: " in text
    assert message in text


def test_a_row_that_appears_twice(tmp_path: Path) -> None:
    assert "line 3: w argand fp32 appears twice" in refused(
        write_table(tmp_path / "t.csv", [ROW, ROW])
    )


def test_control_sequences_are_escaped(tmp_path: Path) -> None:
    for evil in ({"workload": "\x1b[2Jw"}, {"time_us_p50": "\x1b]0;x\x07"}):
        assert "\\x1b" in refused(write_table(tmp_path / "t.csv", [ROW | evil]))
    rows = read_rows(write_table(tmp_path / "t.csv", [ROW | {"reason": "\x1b[2J", "m": "\x07"}]))
    assert [row.reason for row in rows.values()] == ["\\x1b[2J"]


def test_a_field_without_end(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [ROW])
    path.write_text(path.read_text() + '"' + "x" * (csv.field_size_limit() + 1) + "\n")
    assert "no CSV" in refused(path)
