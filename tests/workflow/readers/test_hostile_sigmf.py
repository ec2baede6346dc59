"""SigMF recordings whose JSON says what it must not, and those that are none."""

from __future__ import annotations

import contextlib
import copy
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.covers import EXHAUSTIVE
from tests.workflow.nested_places import places
from tests.workflow.one_case import error_of, staged, study_of
from tests.workflow.peak_memory import with_peak
from tests.workflow.readers.test_sigmf import CAPTURE, capture, case, write
from workflow.config.mistakes import StudyError
from workflow.files.input_error import InputError
from workflow.readers import READERS
from workflow.readers.sigmf import TOO_DEEP, SigMF

RATE = "META must have a finite number as core:sample_rate"


def test_a_value_that_is_too_deep_to_be_written_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON is read some levels deeper than it is written."""
    deep: list[Any] = []
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    given = {"x": deep, "place": [6.88], "core:author": "Ada"}
    monkeypatch.setattr(SigMF, "_global", given)
    said = SigMF(write(tmp_path, np.zeros(8, "<f4"), "cf32_le")).header()
    assert (said["x"], said["place"], said["core:author"]) == (TOO_DEEP, "[6.88]", "Ada")


@pytest.mark.parametrize(
    ("kind", "captures", "more", "said"),
    [
        ("ci16", (), {}, "META must have a core:datatype such as cf32_le or ci16_le, got 'ci16'"),
        ("ci8_le", (), {}, "META must have a core:datatype"),
        (3, (), {}, "META must have a core:datatype"),
        ("ci16_le", (), {"sample_rate": 0}, f"{RATE}, got 0"),
        ("ci16_le", (), {"sample_rate": 10**400}, f"{RATE}, got 1000"),
        ("ci16_le", (), {"sample_rate": float("nan")}, f"{RATE}, got nan"),
        ("ci16_le", (), {"sample_rate": "2e6"}, f"{RATE}, got '2e6'"),
        ("ci16_le", (), {"sample_rate": 1e-320}, "META must tell of 1e-09 to 1e+21 samples a "
         "second, got 9.99989e-321"),
        ("ci16_le", (), {"num_channels": True}, "META must have from 1 to 65536 channels"),
        ("ci16_le", (), {"num_channels": 1.5}, "META must have from 1 to 65536 channels"),
        ("ci16_le", (), {"num_channels": 0}, "META must have from 1 to 65536 channels"),
        ("ci16_le", (), {"num_channels": 7}, "DATA must have whole samples of 7 channels of "
         "ci16_le, got 256 bytes"),
        ("ci16_le", (), {"dataset": "/etc/passwd"}, "META has core:dataset, and samples in "
         ".sigmf-data alone are read"),
        ("ci16_le", (), {"trailing_bytes": 4}, "META has core:trailing_bytes"),
        ("ci16_le", (CAPTURE, {**CAPTURE, "core:sample_start": 9, "core:frequency": 2.4e9}), {},
         "META has captures of core:frequency 915000000.0 and, from sample 9 on, 2400000000.0; an "
         "input is of one, so write each as a recording of its own"),
        ("ci16_le", ({"core:header_bytes": -1},), {}, "META must have a whole number from 0 on"),
        ("ci16_le", (CAPTURE, capture(9, header_bytes=16)), {}, "META has core:header_bytes 16 "
         "before samples, from sample 9 on, and those of the first capture alone are passed over"),
        ("ci16_le", (), {"offset": -4}, "META must have a whole number from 0 on as core:offset"),
        ("ci16_le", (capture(9, header_bytes=16),), {}, "META has core:header_bytes 16 before "
         "sample 9, and only those before the file's first sample are passed over; write what"),
        ("ci16_le", ({"core:header_bytes": 999},), {}, "DATA must have whole samples of 1 chann"),
        ("ci16_le", ({"core:frequency": "x"},), {}, "META must have a finite number as core:freq"),
        ("ci16_le", (3,), {}, "META must have a list of objects as `captures`"),
    ],
)  # fmt: skip
def test_what_cannot_be(tmp_path: Path, kind: Any, captures: Any, more: Any, said: Any) -> None:
    data = np.arange(128, dtype="<i2")
    path = write(tmp_path, data, kind, *captures, **more)
    said = said.replace("META", str(path)).replace("DATA", str(path.with_suffix(".sigmf-data")))
    assert error_of(case(path)).startswith(f"input.file: {said}")


ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1, 1.0, 2**31, 2**63, 10**400, 1e308, 1e-320, float("nan"), float("inf"), "",
    "x", "\x00", "9" * 5000, [], [[]], {}, {"a": 1}, "2026-11-28T10:00:00Z", "9999-99-99T99:99:99Z",
    "cf32_le", "ru8", [1, 2, 3], "\ud800",
)  # fmt: skip


def test_any_value_anywhere_is_a_recording_or_an_error(tmp_path: Path) -> None:
    """Each value of the JSON in turn becomes an odd one, of another type or at a type's end."""
    later = capture(64, datetime="2026-11-28T10:00:00.500032Z", global_index=64, frequency=915e6)
    path = write(
        tmp_path, np.arange(256, dtype="<i2"), "ci16_le", CAPTURE | {"core:global_index": 0}, later,
        offset=0, num_channels=2, geolocation={"type": "Point", "coordinates": [1, 2]}, author="a",
    )  # fmt: skip
    good = json.loads(path.read_text())
    for *holders, key in places(good):
        for odd in ODD[:: 1 if EXHAUSTIVE else 3]:
            content = copy.deepcopy(good)
            holder = content
            for one in holders:
                holder = holder[one]
            holder[key] = odd
            path.write_text(json.dumps(content))
            with contextlib.suppress(InputError, StudyError):
                assert all(
                    np.isfinite(one.values).all() for one in staged(case(path)).coordinates.values()
                )


def test_files_that_are_none(tmp_path: Path) -> None:
    path = write(tmp_path, np.arange(128, dtype="<f4"), "cf32_le")
    assert error_of(case(path, zero_level=1)) == (
        "input.zero_level: must be of integers, got float32 samples"
    )
    for text in ("", "[]", "{}", '{"global": 3}', "\x00", "[" * 100_000, '{"global":' + "9" * 5000):
        path.write_text(text)
        assert error_of(case(path)).startswith(f"input.file: {path} ")
    path.unlink()
    assert error_of(case(path)).startswith(f"input.file: there is no file {path} (looked in ")
    said = "input.file: must be the .sigmf-meta or the .sigmf-data of a SigMF recording, got "
    assert error_of(case(tmp_path / "r.sigmf")).startswith(said)
    write(tmp_path, np.arange(128, dtype="<f4"), "cf32_le")
    given = case(path) | {"input": {"file": str(path), "samples": "x"}}
    assert "by its name it is sigmf: `format: sigmf` reads samples of a SigMF" in error_of(given)


def test_a_file_that_becomes_shorter_and_memory_of_a_check(tmp_path: Path) -> None:
    path = write(tmp_path, np.arange(8, dtype="<f4"), "cf32_le")
    reader = READERS["sigmf"](path)
    assert reader.outline("samples").data.shape == (4,)
    write(tmp_path, np.arange(6, dtype="<f4"), "cf32_le")
    with pytest.raises(InputError, match="became shorter while it was read"):
        reader.read("samples", [slice(0, 4)])
    with path.with_suffix(".sigmf-data").open("r+b") as file:
        file.truncate(1 << 30)
    one = study_of(case(path)).workload("w")
    one.check()  # imports
    _, peak = with_peak(one.check)
    assert peak < 1 << 20
