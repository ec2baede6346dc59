"""Records and growth: a flipped bit is an error or changes nothing, a cut is an error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workflow.accuracy.grading import K_VALUES, GrowthRow, read_growth, write_growth
from workflow.records import Record, read_records, write_records

RECORD = Record(
    workload="w", kind="gemm", implementation="argand", precision="fp32", algorithm="3 x cgemm",
    device="a processor", m=2, time_us_p50=1.5, rel_frobenius=1e-7, verified=True,
)  # fmt: skip
GROWTH = GrowthRow("fp32", "re", K_VALUES, (1e-7,) * 6, (1.0e20,) * 6, 0.25, 0.1, "A")

KINDS: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any], Any]] = {
    "records": (
        lambda path: write_records(path, [RECORD, replace(RECORD, precision="tf32")]),
        read_records,
        [RECORD, replace(RECORD, precision="tf32")],
    ),
    "growth": (lambda path: write_growth(path, [GROWTH]), read_growth, [GROWTH]),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "w.json"


def refused(read: Callable[[Path], Any], path: Path) -> str:
    with pytest.raises(ValueError, match=r"w\.json: .*delete it and run again") as raised:
        read(path)
    return str(raised.value)


def test_flipped_bits(kind: Any, path: Path) -> None:
    """One in seven, so that each bit of a byte has its turn: all of them take a minute."""
    write, read, content = kind
    write(path)
    assert read(path) == content
    good = path.read_bytes()
    settled = 0
    for bit in range(0, 8 * len(good), 7):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            found = read(path)
        except ValueError as error:
            settled += str(error).startswith(f"{path}: ")
        else:  # such as the e of 1e-07
            assert found == content, (bit, bytes(damaged))
            settled += 1
    assert settled == len(range(0, 8 * len(good), 7))


def test_cut_anywhere_or_with_more(kind: Any, path: Path) -> None:
    write, read, _ = kind
    write(path)
    good = path.read_bytes()
    for length in range(0, len(good) - 1, 3):  # the last byte ends the last line
        path.write_bytes(good[:length])
        refused(read, path)
    for more in (b"{}\n", b"\0", good):
        path.write_bytes(good + more)
        refused(read, path)
    path.write_bytes(good[::-1])
    refused(read, path)


def test_rows_that_were_taken_away_or_changed_places(path: Path) -> None:
    write_records(path, [replace(RECORD, m=m) for m in range(4)])
    lines = path.read_bytes().splitlines(keepends=True)
    for chosen in ([0, 1, 2, 4], [0, 4], [4], [1, 0, 2, 3, 4], [0, 0, 1, 2, 4], [0, 1, 2, 3]):
        path.write_bytes(b"".join(lines[index] for index in chosen))
        refused(read_records, path)
    path.write_bytes(b"".join(lines))
    assert len(read_records(path)) == 4


def test_no_rows_are_not_an_empty_file(path: Path) -> None:
    write_records(path, [])
    assert read_records(path) == []
    path.write_bytes(b"")
    assert "cut short, damaged or of an earlier version" in refused(read_records, path)


def test_files_of_earlier_versions(path: Path) -> None:
    """Those had no checksums."""
    path.write_text('{"workload": "w"}\n')
    assert "of an earlier version" in refused(read_records, path)
    path.write_text("[]")
    assert "of an earlier version" in refused(read_growth, path)


def test_others_read_them_as_json(path: Path) -> None:
    write_records(path, [RECORD])
    row, last = map(json.loads, path.read_text().splitlines())
    assert row["precision"] == "fp32"
    assert last["rows"] == 1
    assert re.fullmatch("[0-9a-f]{64}", last["sha256"])
    write_growth(path, [GROWTH])
    assert json.loads(path.read_text())["growth"][0]["grade"] == "A"


def test_values_that_json_has_not(path: Path) -> None:
    record = replace(RECORD, rel_frobenius=float("inf"), bound=float("-inf"))
    write_records(path, [record])
    assert read_records(path) == [record]
    rows = [replace(GROWTH, slope=float("inf"))]
    write_growth(path, rows)
    assert read_growth(path) == rows
