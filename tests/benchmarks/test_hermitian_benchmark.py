"""The benchmark of small Hermitian systems, on a few."""

from pathlib import Path
from typing import Any

import pytest
from argand import solve_hermitian as argand_solve_hermitian

from benchmarks import solve_hermitian
from benchmarks.harness.recorded import plain_rows

SMALL = ["--n", "3", "30", "--systems", "7", "--seconds", "0.01", "--device", "cpu"]


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_ours_and_the_peer_are_measured_and_accurate(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "hermitian.csv"
    assert solve_hermitian.main([*SMALL, "--input", kind, "--csv", str(path)]) == 0
    rows = plain_rows(path)
    assert [row["implementation"] for row in rows] == ["numpy", "argand"] * 2
    assert all(row["verified"] == "True" for row in rows)
    assert all(float(row["speedup"]) > 0 for row in rows[1::2])


def test_a_wrong_solution_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any) -> Any:
        found = argand_solve_hermitian(*given)
        return found * 1.001

    monkeypatch.setattr(solve_hermitian, "solve_hermitian", wrong)
    assert solve_hermitian.main([*SMALL, "--no-peer"]) == 1
