"""The benchmark of calls on the CPU: a row a drawn case, and a result that is wrong."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import herk

from benchmarks.cpu_calls import __main__ as cpu_calls
from benchmarks.cpu_calls import kinds

GIVEN = ["--cases", "2", "--seed", "3", "--seconds", "0.0001"]


def test_every_operation_has_rows_that_are_those_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    assert cpu_calls.main([*GIVEN, "--csv", str(path)]) == 0
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["operation"] for row in rows] == [kind for kind in cpu_calls.KINDS for _ in "12"]
    for row in rows:
        assert row["verified"] == "True"
        quotient = float(row["numpy_us"]) / float(row["time_us"])
        np.testing.assert_allclose(float(row["ratio"]), quotient, rtol=1e-9)


def test_a_wrong_result_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(x: Any) -> Any:
        found = herk(x)
        found[..., -1, 0] += 1e-2 * np.abs(found).max()
        return found

    monkeypatch.setattr(kinds, "herk", wrong)
    assert cpu_calls.main([*GIVEN, "--kinds", "herk"]) == 1
