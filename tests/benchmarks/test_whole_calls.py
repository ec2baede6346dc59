"""The benchmarks of whole calls, on small ones: their rows, and a result that is wrong."""

from pathlib import Path
from types import ModuleType
from typing import Any

import argand
import pytest

from benchmarks import solve, spectrum
from benchmarks.harness.recorded import plain_rows
from benchmarks.harness.signals import INPUTS

QUICK = ["--device", "cpu", "--repeats", "1", "--seconds", "0.01"]
SEGMENTS = ["--lengths", "16", "--samples", "4000", "--rows", "2"]
ROWS: list[tuple[ModuleType, list[str], list[str]]] = [
    (spectrum, [*SEGMENTS, "--inputs", *INPUTS, "--averages", "1", "3", "all"],
     ["scipy", "argand"] * (3 * len(INPUTS))),
]  # fmt: skip
WRONG: list[tuple[ModuleType, list[str], float]] = [
    (solve, ["--n", "20"], 1e-11), (spectrum, SEGMENTS, 1e-3),
]  # fmt: skip
"""Benchmarks, and by how much what they call is wrong."""


def name_of(value: object) -> str | None:
    return value.__name__.rpartition(".")[2] if isinstance(value, ModuleType) else None


@pytest.mark.parametrize(("benchmark_of", "given", "ways"), ROWS, ids=name_of)
def test_ours_and_the_peer_are_measured_and_right(
    tmp_path: Path, benchmark_of: ModuleType, given: list[str], ways: list[str]
) -> None:
    path = tmp_path / "rows.csv"
    assert benchmark_of.main([*given, *QUICK, "--csv", str(path)]) == 0
    rows = plain_rows(path)
    assert [row["implementation"] for row in rows] == ways
    assert {row.get("verified", "True") for row in rows} == {"True"}
    assert {row.get("verdict", "verified") for row in rows} == {"verified"}
    assert all(float(row["speedup"]) > 0 for row in rows if row["implementation"] == "argand")
    assert all(float(row["of_copy"]) > 0 for row in rows)


@pytest.mark.parametrize(("benchmark_of", "given", "off"), WRONG, ids=name_of)
def test_a_wrong_result_is_not_verified(
    monkeypatch: pytest.MonkeyPatch, benchmark_of: ModuleType, given: list[str], off: float
) -> None:
    name = str(name_of(benchmark_of))
    right = getattr(argand, name)

    def wrong(*arguments: Any, **options: Any) -> Any:
        found = right(*arguments, **options)
        if not options.get("details"):  # of which the benchmark of systems takes the steps
            found *= 1 + off
        return found

    monkeypatch.setattr(benchmark_of, name, wrong)
    assert benchmark_of.main([*given, *QUICK, *([] if name == "herk" else ["--no-peer"])]) == 1


def test_too_few_samples_for_a_mean_are_refused() -> None:
    with pytest.raises(SystemExit, match="make a group of 900 segments"):
        spectrum.main([*SEGMENTS, *QUICK, "--averages", "900"])
