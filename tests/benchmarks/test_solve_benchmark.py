"""The benchmark of dense systems, on the CPU: its rows, and a solution that is not accurate."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import argand
import numpy as np
import pytest

from benchmarks import solve, solve_parts


def test_ours_and_numpy_have_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "solve.csv"
    status = solve.main(
        ["--n", "30", "45", "--device", "cpu", "--precisions", "default", "14xint8",
         "--blocks", "16", "--repeats", "1", "--seconds", "0.01", "--columns", "2",
         "--csv", str(path)]
    )  # fmt: skip
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert status == 0
    assert [(row["n"], row["implementation"], row["precision"], row["block"]) for row in rows] == [
        (n, *rest)
        for n in ("30", "45")
        for rest in (("numpy", "fp64", ""), ("argand", "fp64", "16"), ("argand", "14xint8", "16"))
    ]
    assert all(row["verified"] == "True" and float(row["tflops"]) > 0 for row in rows)
    assert [bool(row["speedup"]) for row in rows] == [False, True, True] * 2
    assert capsys.readouterr().out.count("backward error") == 6


def test_backward_error_is_that_of_the_definition(rng: np.random.Generator) -> None:
    a, x = rng.standard_normal((5, 5)) + 0j, rng.standard_normal((5, 2)) + 0j
    b = a @ x
    b[3, 1] += 1
    scale = abs(a).sum(axis=1).max() * abs(x[:, 1]).max() + abs(b[:, 1]).max()
    assert solve.backward_error(a, x, b) == pytest.approx(1 / scale, rel=1e-12)


def test_a_wrong_solution_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*arguments: Any, **options: Any) -> Any:
        found = argand.solve(*arguments, **options)
        return found if options.get("details") else found * (1 + 1e-11)

    monkeypatch.setattr(solve, "solve", wrong)
    given = ["--n", "20", "--device", "cpu", "--repeats", "1", "--seconds", "0.01", "--no-peer"]
    assert solve.main(given) == 1


def test_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert solve.main(["--n", "40", "--device", "cpu", "--blocks", "8", "--parts"]) == 0
    line = capsys.readouterr().out
    assert all(name in line for name in solve_parts.PARTS)
