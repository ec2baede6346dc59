"""The benchmark of images, on a small one."""

from pathlib import Path
from typing import Any

import pytest
from argand import PRECISIONS
from argand import image as argand_image

from benchmarks import image
from benchmarks.harness.recorded import plain_rows

SMALL = ["--antennas", "9", "--channels", "2", "--grid", "12", "--seconds", "0.01"]
SMALL += ["--device", "cpu"]


def test_ours_and_the_peer_are_measured_and_accurate(tmp_path: Path) -> None:
    path = tmp_path / "image.csv"
    assert image.main([*SMALL, "--csv", str(path)]) == 0
    rows = plain_rows(path)
    assert [row["implementation"] for row in rows] == ["numpy"] + ["argand"] * len(PRECISIONS)
    assert all(row["verified"] == "True" for row in rows)


def test_a_wrong_image_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any, **options: Any) -> Any:
        return argand_image(*given, **options) * (1 + 1e-2)

    monkeypatch.setattr(image, "image", wrong)
    assert image.main([*SMALL, "--no-peer", "--precisions", "fp64"]) == 1
