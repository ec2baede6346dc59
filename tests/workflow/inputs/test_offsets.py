"""Frequencies that are offsets from a carrier are none of waves that arrive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from input_files import put
from test_chains import run

from tests.workflow.chained_cases import study_of
from tests.workflow.inputs.test_own_coordinates import mistake
from workflow.preflight.check import check_study


def test_those_above_the_carrier_look_like_some(tmp_path: Path) -> None:
    """A beam's phases and a UVH5 file by them would be wrong.

    Those of complex samples are added to their channel's frequency; of real ones 0 is an edge.
    """
    path = put(tmp_path / "v.h5", v=np.ones((64, 3, 2), np.float32))
    place = {"axis": "antenna", "units": "m", "values": [0.0, 1.0, 2.0]}
    source = {
        "file": str(path), "samples": {"real": "v"}, "axes": ["time", "antenna", "channel"],
        "select": {"samples": {"channel": 1}},
        "coordinates": {
            "frequency": {"start": 150.0, "step": 5.0, "units": "MHz"}, "east": place,
            "north": place, "time": {"step": 0.5, "units": "us"},
        },
    }  # fmt: skip
    bank: dict[str, Any] = {
        "kind": "channelise", "channels": 4, "taps": 2, "axis": "time", "real": True,
        "input": source,
    }  # fmt: skip
    above = {"voltages": {"workload": "bank"}, "select": {"voltages": {"frequency": "1:2"}}}
    beams = {"samples": {"workload": "bank"}, "select": {"samples": {"frequency": "1:2"}}}
    site = {"latitude_deg": 0.0, "longitude_deg": 0.0, "julian_date": 2461372.75}
    written = {**site, "channel_width_hz": 1.0}
    said = (
        "must be those of waves as they arrive, from 0 Hz on, got 500000 to 500000 Hz (centre of "
        "the channel, from frequency 0 of the samples, which are real); where these are offsets "
        "from a carrier, `centre_hz` of the filter bank adds it"
    )
    for key, case in (
        ("uvh5: frequencies", {"kind": "correlate", "input": above, "uvh5": written}),
        ("input.coordinates.frequency", {"kind": "beamforming", "beams": 2, "input": beams}),
    ):
        assert f"{key} {said}" in mistake(bank=bank, w=case)
        check_study(study_of({"bank": {**bank, "centre_hz": 155e6}, "w": case}))


@pytest.mark.parametrize("by_file", [False, True])
@pytest.mark.parametrize(
    ("taken", "said"),
    [
        ("1:4", ""), ("1:8", "take those of the lower half by input.select"),
        ("5:8", "from 0 Hz on, got -3000000 to -1000000 Hz (frequency)"),
    ],
)  # fmt: skip
def test_those_in_the_upper_half_of_a_transform_are_of_another_sign(
    tmp_path: Path, taken: str, said: str, by_file: bool
) -> None:
    """No wave has the frequencies that bins of real microphones have in their upper half."""
    put(tmp_path / "v.h5", v=np.ones((3, 2, 8), np.float32))
    place = {"axis": "antenna", "units": "m", "values": [0.0, 1.0, 2.0]}
    bins: dict[str, Any] = {"bins": {"kind": "dft", "axis": "time", "input": {
        "file": str(tmp_path / "v.h5"), "samples": {"real": "v"}, "sample_rate_hz": 8e6,
        "axes": ["antenna", "segment", "time"], "coordinates": {"east": place, "north": place},
    }}}  # fmt: skip
    below: dict[str, Any] = {"samples": {"workload": "bins"}}
    if by_file:
        run(study_of(bins), tmp_path)
        path = str(tmp_path / "bins" / "products" / "w.h5")
        bins, below = {}, {"file": path, "samples": "/entry/data/spectrum"}
    below |= {"axes": ["antenna", "time", "frequency"], "select": {"samples": {"frequency": taken}}}
    beams = {"w": {"kind": "beamforming", "beams": 2, "input": below}}
    if said:
        assert said in mistake(**bins, **beams)
    else:
        check_study(study_of({**bins, **beams}))
