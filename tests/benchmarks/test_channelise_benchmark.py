"""The benchmark of filter banks, on a small one."""

from pathlib import Path
from typing import Any

import pytest
from argand import channelise as argand_channelise

from benchmarks import channelise
from benchmarks.harness.recorded import plain_rows
from benchmarks.harness.signals import INPUTS

SMALL = ["--channels", "16", "--taps", "4", "--samples", "4000", "--seconds", "0.01"]
SMALL += ["--device", "cpu", "--rows", "2"]


@pytest.mark.parametrize("oversampling", ["1", "4/3"])
def test_ours_and_the_peer_are_measured_and_accurate(tmp_path: Path, oversampling: str) -> None:
    path = tmp_path / "channelise.csv"
    more = ["--inputs", *INPUTS, "--oversampling", oversampling, "--csv", str(path)]
    assert channelise.main([*SMALL, *more]) == 0
    rows = plain_rows(path)
    assert [row["implementation"] for row in rows] == ["numpy", "argand"] * len(INPUTS)
    assert all(row["verified"] == "True" for row in rows)
    assert all(float(row["of_copy"]) > 0 for row in rows)


def test_a_wrong_spectrum_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any, **options: Any) -> Any:
        return argand_channelise(*given, **options) * (1 + 1e-3)

    monkeypatch.setattr(channelise, "channelise", wrong)
    assert channelise.main([*SMALL, "--no-peer"]) == 1
