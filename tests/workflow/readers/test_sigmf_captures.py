"""Captures of SigMF recordings: what they count from, and samples that are missing between them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workflow.one_case import error_of, staged
from tests.workflow.readers.test_sigmf import capture, case, write
from workflow.readers.sigmf_captures import fault_in


@pytest.mark.parametrize(
    ("captures", "offset", "first"),
    [
        ([capture(5000, datetime="2026-11-28T10:00:00Z")], 5000, 0.0),
        ([capture(5004, datetime="2026-11-28T10:00:00Z")], 5000, -2e-6),
        ([], 5000, 0.0),
        # Dates of whole seconds are as far apart as samples, as far as they say.
        ([capture(0, datetime="2026-11-28T10:00:00Z"), capture(32, datetime="2026-11-28T10:00:01Z"),
          capture(64, global_index=3), capture(66, global_index=5, header_bytes=0)], None, 0.0),
        # As programs without whole numbers write JSON.
        ([capture(0.0, header_bytes=0.0, global_index=6.0), capture(64.0, global_index=70.0)], 0.0,
         0.0),
    ],
)  # fmt: skip
def test_captures_count_samples_from_the_offset(
    tmp_path: Path, captures: Any, offset: Any, first: float
) -> None:
    path = write(tmp_path, np.arange(256, dtype="<i2"), "ci16_le", {}, offset=offset)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "captures": captures}))
    time = staged(case(path)).coordinates["time"]
    np.testing.assert_allclose(time.values[:2], [first, first + 5e-7], atol=1e-18)


@pytest.mark.parametrize(
    ("late", "is_fault"),
    [(0.0, False), (0.9, False), (1.1, True), (-0.9, False), (-1.1, True)],
)
def test_clocks_of_samples_and_of_dates_may_be_apart(late: float, is_fault: bool) -> None:
    """Clocks may be apart by 100 ppm, which is 0.36 s in an hour."""
    hour = datetime(2026, 11, 28, 13, tzinfo=UTC) + timedelta(seconds=0.36 * late)
    captures = [
        {"core:sample_start": 0, "core:datetime": "2026-11-28T12:00:00.000000Z"},
        {"core:sample_start": 3600 * 1000, "core:datetime": hour.isoformat()},
    ]
    assert bool(fault_in(captures, 0, 1000.0)) == is_fault


NOON = "2026-11-28T12:00:00.000Z"


@pytest.mark.parametrize(
    ("captures", "offset", "said"),
    [
        ([capture(0), capture(64)], 8, "its first capture must have a core:sample_start from "
         "core:offset 8 on, got 0"),
        ([capture(0), capture(64), capture(60)], None, "its captures must be in the order of "
         "core:sample_start, got 64 and 60"),
        ([capture(0, global_index=7), capture(64, global_index=80)], None, "its captures from "
         "samples 0 and 64 on are 64 samples apart, by core:global_index 73: samples are missing"),
        ([capture(0, datetime=NOON), capture(64, datetime="2026-11-28T13:00:00.250+01:00")], None,
         "its captures from samples 0 and 64 on are 3.2e-05 s apart at core:sample_rate 2000000, "
         "by core:datetime 0.25 s: samples are missing between them, or the rate is another"),
    ],
)  # fmt: skip
def test_captures_between_which_samples_are_missing(
    tmp_path: Path, captures: Any, offset: Any, said: str
) -> None:
    """Unless the study says the times of the samples."""
    path = write(tmp_path, np.arange(256, dtype="<i2"), "ci16_le", *captures, offset=offset)
    error = error_of(case(path))
    assert error.startswith(f"input.file: {path}: {said}")
    assert error.endswith("; or give input.coordinates.time")
    found = staged(case(path, coordinates={"time": {"step_s": 0.25}}))
    np.testing.assert_array_equal(found.coordinates["time"].values, np.arange(128) / 4)


def test_a_rate_that_the_recording_does_not_say(tmp_path: Path) -> None:
    path = write(tmp_path, np.arange(256, dtype="<i2"), "ci16_le", sample_rate=3.0)
    content = json.loads(path.read_text())
    del content["global"]["core:sample_rate"]
    path.write_text(json.dumps(content))
    assert error_of(case(path)) == (
        f"input.file: {path}: its global object has no core:sample_rate; or give "
        "input.coordinates.time"
    )
    found = staged(case(path, coordinates={"time": {"step_s": 0.5}})).coordinates
    np.testing.assert_array_equal(found["time"].values, np.arange(128) / 2)
    assert found["selected_frequency"].values.tolist() == [915e6]
