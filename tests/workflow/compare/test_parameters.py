"""Runs of workloads with other parameters are not compared, whatever their sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from compared_tables import ROW, write_table

from workflow.compare.reading import Key, Row, read_rows
from workflow.compare.verdicts import Margins, compare

STUDY = """
workloads:
  bank: {kind: channelise, channels: 4, taps: 2, samples: 64, antennas: 3}
  w: {kind: correlate, input: {voltages: {workload: bank}}}
"""
OF_W = ("w", "argand", "fp32", "")


def rows(folder: Path, study: str | None = STUDY) -> dict[Key, Row]:
    write_table(folder / "tables" / "performance.csv", [ROW])
    if study is not None:
        (folder / "study.yaml").write_text(study)
    return read_rows(folder)


@pytest.mark.parametrize(
    ("found", "edited", "reason"),
    [
        ("taps: 2", "taps: 2, window: hann", 'parameters bank.window "hamming" / "hann"'),
        ("bank}}}", "bank}}, integrate: 4}", "parameters integrate null / 4"),
        ("taps: 2", "taps: 2, window: hamming", ""),
        ("taps: 2", "taps: 2, shards: 3, tolerance: 1.0e-3", ""),
        ("kind: correlate", "kind: correlate, kernels: {tf32: mma.sync}", ""),
        ("taps: 2", "taps: 2, no_such_key: 1", ""),
    ],
)  # fmt: skip
def test_other_parameters_of_it_or_of_what_it_reads(
    tmp_path: Path, found: str, edited: str, reason: str
) -> None:
    """Defaults count as given, how something is computed does not, nor a study that is none."""
    before, after = rows(tmp_path / "a"), rows(tmp_path / "b", STUDY.replace(found, edited))
    (compared,) = compare(before, after, Margins())
    assert (compared.reason, compared.is_compared) == (reason, not reason)
    (compared,) = compare(before, after, Margins(across=frozenset({"parameters"})))
    assert compared.is_compared


def test_a_table_without_its_study_tells_none(tmp_path: Path) -> None:
    (compared,) = compare(rows(tmp_path / "a"), rows(tmp_path / "b", None), Margins())
    assert compared.is_compared
    assert "bank.channels" in rows(tmp_path / "a")[OF_W].parameters
