"""The benchmark of detected beams, on small ones."""

from pathlib import Path

import pytest
from argand import PRECISIONS
from argand.runtime.ceilings import Ceilings

from benchmarks import beam_power
from benchmarks.harness.recorded import plain_rows

SMALL = ["--shape", "3x5x7x100", "--integrate", "10", "--seconds", "0.01", "--device", "cpu"]


@pytest.fixture
def ceilings(tmp_path: Path) -> str:
    path = tmp_path / "ceilings.json"
    rates = {row.operand.name: 1.0 for row in PRECISIONS.values()}
    path.write_text(Ceilings("cpu", 10.0, rates).to_json())
    return str(path)


@pytest.mark.parametrize("kind", beam_power.INPUTS)
def test_every_way_is_measured_and_accurate(tmp_path: Path, ceilings: str, kind: str) -> None:
    path = tmp_path / "power.csv"
    found = beam_power.main([
        *SMALL, "--input", kind, "--detect", "stokes" if kind == "int8" else "power",
        "--csv", str(path), "--ceilings", ceilings,
    ])  # fmt: skip
    assert found == 0
    rows = plain_rows(path)
    ways = ["argand product", "argand product, detected", "argand", "numpy"]
    assert [row["implementation"] for row in rows] == ways
    assert all(row["verified"] == "True" for row in rows)
    assert all((row["over_apart"] != "") == (row["implementation"] == "argand") for row in rows)


def test_exact_beams_are_measured(tmp_path: Path, ceilings: str) -> None:
    path = tmp_path / "power.csv"
    more = ["--input", "int8", "--precisions", "exact", "--csv", str(path), "--no-peer"]
    assert beam_power.main([*SMALL, *more, "--ceilings", ceilings]) == 0
    assert {row["precision"] for row in plain_rows(path)} == {"exact"}
