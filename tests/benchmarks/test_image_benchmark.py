"""The benchmark of images, on a small one."""

from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from benchmarks.image import main


def test_ours_and_the_peer_are_measured_and_accurate(tmp_path: Path) -> None:
    path = tmp_path / "image.csv"
    small = ["--antennas", "9", "--channels", "2", "--grid", "12", "--seconds", "0.01"]
    assert main([*small, "--device", "cpu", "--csv", str(path)]) == 0
    rows = plain_rows(path)
    assert [row["implementation"] for row in rows] == ["numpy"] + 7 * ["argand"]
    assert all(row["verified"] == "True" for row in rows)
