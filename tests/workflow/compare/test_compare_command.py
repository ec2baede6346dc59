"""``python -m workflow.compare``: its files, what it says, and its exit status."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from compared_tables import ROW, times, write_table

from workflow.compare import __main__ as command
from workflow.tables.readable import number

PEER = ROW | {"implementation": "numpy"}


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, a: Path, b: Path, *flags: str) -> int:
    out = ("--out", str(folder / "out"))
    monkeypatch.setattr(sys, "argv", ["compare", *out, *flags, str(a), str(b)])
    return command.main()


def test_a_regression_is_reported_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a = write_table(tmp_path / "a.csv", [PEER, ROW, ROW | {"precision": "tf32"}])
    b = write_table(tmp_path / "b.csv", [PEER, ROW | times(2), ROW | {"precision": "bf16"}])
    assert run(monkeypatch, tmp_path, a, b) == 1
    said = capsys.readouterr().out
    assert "w argand fp32: slower, 2 of the time\n" in said
    assert "the peers' times are 1.00 of A's" in said
    assert said.splitlines()[-1].startswith("4 rows: 1 slower, ")
    with (tmp_path / "out" / "comparison.csv").open() as file:
        rows = {row["precision"]: row for row in csv.DictReader(file) if row["shard"] == ""
                and row["implementation"] == "argand"}  # fmt: skip
    assert (rows["fp32"]["verdict"], rows["fp32"]["regression"]) == ("slower", "true")
    assert float(rows["fp32"]["time_ratio_low"]) < 2 < float(rows["fp32"]["time_ratio_high"])
    assert rows["tf32"]["verdict"] == "only in A"
    text = (tmp_path / "out" / "comparison.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| w |")]
    assert "| slower |" in lines[0]
    low, high = (number(float(rows["fp32"][f"time_ratio_{end}"])) for end in ("low", "high"))
    assert f"| {low} to {high} |" in lines[0]
    assert len(lines) == 4
    ElementTree.parse(tmp_path / "out" / "comparison.svg")


def test_no_regression(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a = write_table(tmp_path / "a.csv", [ROW])
    assert run(monkeypatch, tmp_path, a, a) == 0
    assert capsys.readouterr().out.startswith("1 row: 1 ")
    b = write_table(tmp_path / "b.csv", [ROW | times(2)])
    assert run(monkeypatch, tmp_path, a, b, "--margin", "200") == 0
    assert run(monkeypatch, tmp_path, b, a) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"device": "e"},
            "no row of one compares with the other: device d / e; --across device compares",
        ),
        ({"workload": "v"}, "no row of one compares with the other: only in A: w; only in B: v"),
        ({"time_us_p50": "x"}, "b.csv: line 2: time_us_p50 must be a number"),
    ],
)
def test_what_cannot_be_compared_is_a_mistake(
    change: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    a = write_table(tmp_path / "a.csv", [ROW])
    b = write_table(tmp_path / "b.csv", [ROW | change])
    assert run(monkeypatch, tmp_path, a, b) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "flags", [["--margin", "-1"], ["--margin", "nan"], ["--across", "weather"], ["", ""]]
)
def test_flags_that_mean_nothing(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = str(write_table(tmp_path / "a.csv", [ROW]))
    monkeypatch.setattr(sys, "argv", ["compare", *([a, a] if flags[0] else []), *flags])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2


def test_names_that_mean_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = {"workload": "<script>|$x_{$", "reason": "\x1b[2J"}
    a = write_table(tmp_path / "a.csv", [ROW | evil])
    b = write_table(tmp_path / "b.csv", [ROW | evil | times(3)])
    assert run(monkeypatch, tmp_path, a, b) == 1
    assert "\x1b" not in capsys.readouterr().out
    text = (tmp_path / "out" / "comparison.md").read_text()
    assert "\\<script>\\|" in text
    assert "\x1b" not in text
    ElementTree.parse(tmp_path / "out" / "comparison.svg")


def test_a_folder_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a = write_table(tmp_path / "a.csv", [ROW])
    (tmp_path / "out").write_text("")
    assert run(monkeypatch, tmp_path, a, a) == 2
    assert "out" in capsys.readouterr().err


def test_more_rows_than_a_page_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [ROW | {"workload": f"w{number}"} for number in range(200)]
    a = write_table(tmp_path / "a.csv", rows)
    assert run(monkeypatch, tmp_path, a, a) == 0
    assert (tmp_path / "out" / "comparison.svg").stat().st_size < 2_000_000
