"""The benchmark of spectral estimates, on a small one."""

from pathlib import Path
from typing import Any

import pytest
from argand import spectrum as argand_spectrum

from benchmarks import spectrum
from benchmarks.harness.recorded import plain_rows
from benchmarks.harness.signals import INPUTS

SMALL = ["--lengths", "16", "--samples", "4000", "--seconds", "0.01", "--device", "cpu"]
SMALL += ["--rows", "2"]


def test_ours_and_the_peer_are_measured_and_verified(tmp_path: Path) -> None:
    path = tmp_path / "spectrum.csv"
    more = ["--inputs", *INPUTS, "--averages", "1", "3", "all", "--csv", str(path)]
    assert spectrum.main([*SMALL, *more]) == 0
    rows = plain_rows(path)
    assert [row["implementation"] for row in rows] == ["scipy", "argand"] * (3 * len(INPUTS))
    assert all(row["verdict"] == "verified" for row in rows)
    assert all(float(row["of_copy"]) > 0 for row in rows)


def test_a_wrong_estimate_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any, **options: Any) -> Any:
        return argand_spectrum(*given, **options) * (1 + 1e-3)

    monkeypatch.setattr(spectrum, "spectrum", wrong)
    assert spectrum.main([*SMALL, "--no-peer"]) == 1
    with pytest.raises(SystemExit, match="make a group of 900 segments"):
        spectrum.main([*SMALL, "--averages", "900"])
