"""The command that holds random right results to their bounds."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from argand.softmax.problem import SOFTMAX_PRECISIONS

from benchmarks.pipeline.exceedances import DRAWN, Task, main, run
from tests.covers import examples
from tools.docs.attack_tables import exceedances_table
from workflow.workloads import KINDS

CASES = examples(15)


@pytest.mark.parametrize("kind", DRAWN)
def test_random_cases_are_within_their_bounds(kind: str) -> None:
    rows, ratios, said = run(Task(kind, range(100, 100 + CASES), 3, "cpu"))
    assert said == []
    assert [row.precision for row in rows] == list(KINDS[kind].case_type.precision_names)
    assert {row.cases for row in rows} == {CASES}
    assert all(ratio >= 1 for found in ratios.values() for ratio in found)


def test_the_command_writes_what_the_page_shows(tmp_path: Path) -> None:
    path = tmp_path / "exceedances-cpu.csv"
    given = ["--cases", "3", "--kinds", "softmax", "--jobs", "1", "--seed", "5"]
    assert main([*given, "--out", str(path)]) == 0
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["precision"], row["cases"]) for row in rows] == [
        (p, "3") for p in SOFTMAX_PRECISIONS
    ]
    assert "| softmax | fp32 | 3 | 0 | 0 |" in exceedances_table(tmp_path)
