"""Recordings of several files, which a pattern names, with samples missing or twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workflow.one_case import error_of, staged, study_of
from tests.workflow.readers.guppi_file import SAMPLES, case, parts, voltages, write
from workflow.config.mistakes import StudyError
from workflow.files.file_sequence import files_named, recording
from workflow.readers import READERS, guppi_blocks
from workflow.steps.staging import understood


@pytest.fixture
def data(tmp_path: Path) -> Any:
    """Files scan.0000.raw to scan.0002.raw of two blocks each, and another scan's."""
    data = parts(6)
    for number in range(3):
        path = tmp_path / f"scan.{number:04d}.raw"
        write(path, data[2 * number : 2 * number + 2], 2 * number)
    write(tmp_path / "other.0000.raw", parts(1, 2))
    return data


def test_a_pattern_is_one_recording(tmp_path: Path, data: Any) -> None:
    found = staged(case(tmp_path / "scan.*.raw"))
    np.testing.assert_array_equal(found.operands["samples"], voltages(data).transpose(1, 2, 0))
    np.testing.assert_allclose(found.coordinates["time"].values, 1e-6 * np.arange(6 * SAMPLES))
    study = study_of(case(tmp_path / "scan.*.raw"))
    files = [tmp_path / f"scan.{number:04d}.raw" for number in range(3)]
    assert study.input_files("w") == tuple(files)
    assert len(study.input_states("w")) == 3
    assert list(found.attributes["files_sha256"]) == [str(path) for path in files]
    assert found.attributes["source"] == str(tmp_path / "scan.*.raw")
    part = staged(
        case(tmp_path / "scan.*.raw", select={"samples": {"time": "60:70", "frequency": "1:3"}})
    )
    np.testing.assert_array_equal(
        part.operands["samples"], voltages(data)[60:70, :, 1:3].transpose(1, 2, 0)
    )


def test_a_path_is_one_file_and_its_times_are_of_the_recording(tmp_path: Path, data: Any) -> None:
    found = staged(case(tmp_path / "scan.0001.raw"))
    np.testing.assert_array_equal(found.operands["samples"], voltages(data[2:4]).transpose(1, 2, 0))
    assert found.coordinates["time"].long_name == "time since 2018-01-14T14:11:33.000064000 UTC"
    some = staged(case(tmp_path / "scan.000[12].raw"))
    np.testing.assert_array_equal(some.operands["samples"], voltages(data[2:]).transpose(1, 2, 0))


def test_blocks_are_in_the_order_of_their_packets(tmp_path: Path, data: Any) -> None:
    """Whatever the names say."""
    (tmp_path / "scan.0000.raw").rename(tmp_path / "x")
    (tmp_path / "scan.0002.raw").rename(tmp_path / "scan.0000.raw")
    (tmp_path / "x").rename(tmp_path / "scan.0002.raw")
    found = staged(case(tmp_path / "scan.*.raw"))
    np.testing.assert_array_equal(found.operands["samples"], voltages(data).transpose(1, 2, 0))


def test_a_missing_file_is_named(tmp_path: Path, data: Any) -> None:
    pattern = tmp_path / "scan.*.raw"
    (tmp_path / "scan.0001.raw").unlink()
    lacks = f"input.file: {pattern} lacks scan.0001.raw of a recording, whose last file is "
    assert error_of(case(pattern)).startswith(f"{lacks}scan.0002.raw")
    assert error_of(case(pattern, flagged="zero")).startswith(lacks)
    write(tmp_path / "scan.0011.raw", parts(1))
    said = "lacks scan.0001.raw, scan.0003.raw, scan.0004.raw, scan.0005.raw, scan.0006.raw, ... of"
    assert said in error_of(case(pattern))
    for number in (0, 11):
        (tmp_path / f"scan.{number:04d}.raw").unlink()
    assert "lacks scan.0000.raw, scan.0001.raw of" in error_of(case(pattern))
    (tmp_path / f"scan.{'9' * 60}.raw").write_bytes(b"")
    assert "lacks scan.0000.raw, scan.0001.raw, scan.0003.raw" in error_of(case(pattern))


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"DROPBLK": 0.03125}, "2.1% of the packets were dropped when it was recorded, in 4 of 6"),
        ({"NDROP": 1, "NPKT": 3}, "17% of the packets were dropped when it was recorded, in 4 of"),
        ({"DROPBLK": 0.0, "NDROP": 0}, None), ({"DROPBLK": "'none'"}, None), ({}, None),
    ],
)  # fmt: skip
def test_packets_that_the_recorder_dropped(
    tmp_path: Path, data: Any, header: Any, said: str | None
) -> None:
    """Nothing tells which samples are theirs; that there are some is told."""
    for number in range(2):
        path = tmp_path / f"scan.{number:04d}.raw"
        write(path, data[2 * number : 2 * number + 2], 2 * number, **header)
    found = staged(case(tmp_path / "scan.*.raw"))
    assert (said is None) == ("lost" not in found.attributes)
    if said is not None:
        assert found.attributes["lost"]["samples"].startswith(said)
        assert f"; of samples, {said}" in understood(found)


def test_samples_that_are_missing_or_twice(tmp_path: Path, data: Any) -> None:
    """Between files as within one: packets 4 to 8 of the third file's first block."""
    path, last = tmp_path / "scan.*.raw", tmp_path / "scan.0002.raw"
    write(last, data[4:], 6)
    said = (
        f"input.file: block 0 of {last} has PKTIDX 24, 12 after block 1 of "
        f"{tmp_path / 'scan.0001.raw'}, where a block has 4: 64 samples are missing; `flagged: "
        "zero` in the input makes them 0"
    )
    assert error_of(case(path)) == error_of(case(path, flagged="refuse")) == said
    gap = np.zeros((64, 2, 4))
    expected = np.concatenate([voltages(data[:4]), gap, voltages(data[4:])])
    found = staged(case(path, flagged="zero"))
    np.testing.assert_array_equal(found.operands["samples"], expected.transpose(1, 2, 0))
    lost = "64 of 256 times, which the recording lacks"
    assert found.attributes["zeros"] == {"samples": lost}
    assert understood(found).endswith(f"; {lost}, are 0 in samples")
    assert "zeros" not in staged(case(tmp_path / "scan.000[01].raw", flagged="zero")).attributes
    for start in range(110, 200, 7):
        reader = READERS["guppi"](path)
        reader.flagged = "zero"
        part = reader.read("voltages", [slice(start, start + 20), slice(2), slice(4)])
        np.testing.assert_array_equal(part, expected[start : start + 20])
    write(last, data[4:], 3)
    twice = ": samples are there twice, or in no order; leave a file out"
    assert f"block 0 of {last} has PKTIDX 12, 0 after" in error_of(case(path))
    assert error_of(case(path, flagged="zero")).endswith(twice)
    write(last, data[4:], PKTIDX=14)  # by half a block
    assert error_of(case(path)).endswith(twice)
    write(last, data[4:], 10**9)
    assert "more samples are missing than there are" in error_of(case(path, flagged="zero"))


def test_within_one_file(tmp_path: Path) -> None:
    path, data = tmp_path / "v.raw", parts(3)
    write(path, data[:1])
    for number in (2, 4):
        write(tmp_path / "one", data[number // 2 : number // 2 + 1], number)
        with path.open("ab") as file:
            file.write((tmp_path / "one").read_bytes())
    assert f"block 1 of {path} has PKTIDX 8, 8 after block 0 of {path}" in error_of(case(path))
    found = staged(case(path, flagged="zero")).operands["samples"]
    expected = np.zeros((5, SAMPLES, 2, 4), complex)
    expected[::2] = voltages(data).reshape(3, SAMPLES, 2, 4)
    np.testing.assert_array_equal(found, expected.reshape(-1, 2, 4).transpose(1, 2, 0))


def test_a_block_that_is_cut(tmp_path: Path, data: Any) -> None:
    """A recorder's disk was full: the last block is left out, or missing between files."""
    last, pattern = tmp_path / "scan.0002.raw", tmp_path / "scan.*.raw"
    last.write_bytes(last.read_bytes()[:-1])
    assert f"block 1 of {last} is cut: it has 511 of 512 bytes" in error_of(case(pattern))
    found = staged(case(pattern, flagged="zero")).operands["samples"]
    np.testing.assert_array_equal(found, voltages(data[:5]).transpose(1, 2, 0))
    middle = tmp_path / "scan.0001.raw"
    middle.write_bytes(middle.read_bytes()[:-1])
    found = staged(case(pattern, flagged="zero")).operands["samples"]
    assert not found[..., 96:128].any()
    np.testing.assert_array_equal(found[..., 128:], voltages(data[4:5]).transpose(1, 2, 0))


def test_files_of_other_recordings(tmp_path: Path, data: Any) -> None:
    found = error_of(case(tmp_path / "*.0000.raw"))
    assert "must match files of one recording, which differ by a number before the suffix" in found
    assert "got other.0000.raw and scan.0000.raw; name fewer by the pattern" in found
    write(tmp_path / "scan.001.raw", data[:1])
    said = "matches two files of one number, scan."
    assert said in error_of(case(tmp_path / "scan.*.raw"))
    (tmp_path / "scan.001.raw").unlink()
    write(tmp_path / "scan.0002.raw", data[4:], 4, OBSFREQ=1500)
    assert (
        f"block 0 of {tmp_path / 'scan.0002.raw'} must be of the recording of "
        f"{tmp_path / 'scan.0000.raw'}, but its header has OBSFREQ '1500', and that one '1420.0'"
    ) in error_of(case(tmp_path / "scan.*.raw"))
    found = error_of(case(tmp_path / "none.*.raw"))
    assert found.startswith(f"input.file: no file matches {tmp_path / 'none.*.raw'} (looked in ")
    assert "no file matches" in error_of(case(tmp_path / "none" / "*.raw"))


def test_a_file_whose_name_is_a_pattern_is_one_file(tmp_path: Path, data: Any) -> None:
    path = tmp_path / "scan.[0].raw"
    write(path, data)
    write(tmp_path / "scan.0.raw", data[:1])
    assert recording(path, "guppi") == files_named(path, "guppi") == [path]
    assert staged(case(path)).operands["samples"].shape[-1] == 6 * SAMPLES


def test_patterns_are_of_recordings_alone(tmp_path: Path, data: Any) -> None:
    given = case(tmp_path / "scan.*.raw") | {"kind": "dft"}
    given["input"]["format"] = "dada"
    with pytest.raises(StudyError, match=r"input\.file: must be one file, or a pattern where the "):
        study_of(given)
    given["input"] |= {"format": "guppi", "file": [str(tmp_path / "scan.0000.raw")]}
    with pytest.raises(StudyError, match="must be one file, or a pattern where the format is one"):
        study_of(given)


def test_more_blocks_than_are_listed(
    tmp_path: Path, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guppi_blocks, "MAX_BLOCKS", 5)
    found = error_of(case(tmp_path / "scan.*.raw", flagged="zero"))
    first = tmp_path / "scan.0000.raw"
    assert found.startswith(f"input.file: {first} and the files behind it must have at most 5 bl")
