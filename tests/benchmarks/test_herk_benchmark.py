"""The benchmark of Hermitian products, on the CPU: its rows, and a result that is wrong."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks import herk

GIVEN = ["--shape", "2x20x30", "--device", "cpu", "--repeats", "1", "--seconds", "0.01"]


@pytest.mark.parametrize("form", ["full", "triangle"])
def test_ours_and_full_products_have_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    path = tmp_path / "herk.csv"
    given = [*GIVEN, "--precisions", "exact", "fp32", "3xfp16", "--form", form]
    assert herk.main([*given, "--csv", str(path)]) == 0
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [(row["precision"], row["implementation"], row["form"]) for row in rows] == [
        ("exact", "argand full", "full"), ("exact", "argand", form), ("fp32", "blas full", "full"),
        ("fp32", "blas", form), ("3xfp16", "argand full", "full"), ("3xfp16", "argand", form),
    ]  # fmt: skip
    assert all(row["verified"] == "True" and float(row["tflops"]) > 0 for row in rows)
    assert [bool(row["speedup"]) for row in rows] == [False, True] * 3
    assert [float(row["error"]) for row in rows][:2] == [0, 0]
    assert capsys.readouterr().out.count("TFLOP/s") == 6
