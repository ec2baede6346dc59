"""Records: the columns, and lines that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workflow.records import Record, read_records, write_records
from workflow.storage.checked_json import write_lines

RECORD = Record(
    workload="w", kind="gemm", implementation="argand", precision="fp32", algorithm="cgemm",
    device="cpu", m=2, time_us_p50=1.5, verified=True,
)  # fmt: skip


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    write_records(path, [RECORD, RECORD])
    assert read_records(path) == [RECORD, RECORD]


def test_column_order_is_field_order() -> None:
    columns = Record.columns_in_order()
    assert columns[:6] == (
        "workload", "kind", "implementation", "precision", "algorithm", "device",
    )  # fmt: skip
    assert columns[-3:] == ("kernel_digest", "versions", "timestamp")


@pytest.mark.parametrize("row", [{"workload": "w"}, {"colour": 1}])
def test_a_row_of_another_version_is_named(row: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    write_lines(path, [RECORD.row(), row])
    with pytest.raises(ValueError, match=r"w\.jsonl, line 2: .*delete it and run again"):
        read_records(path)
