"""Outlines of the largest sizes that a config may have: no coordinate is computed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workflow.peak_memory import with_peak
from tests.workflow.streamed_runs import workload_of

_SAMPLES = {"antennas": 2, "channels": 1, "samples": 1 << 28}
CASES: dict[str, dict[str, Any]] = {
    "beams": {"kind": "beamforming", "beams": 1, **_SAMPLES},
    "power": {"kind": "beamforming", "beams": 1, **_SAMPLES, "detect": "power", "integrate": 1},
    "visibilities": {"kind": "correlate", **_SAMPLES, "integrate": 1},
    "channels": {"kind": "channelise", "channels": 4, "samples": 1 << 28},
    "spectrogram": {
        "kind": "dft", "power": True, "length": 1024, "segments": 1 << 20, "average": 8,
        "sample_rate_hz": 1e6,
    },
    "image": {
        "kind": "image", "antennas": 8, "channels": 1,
        "directions": {"n": 8192, "field_of_view_deg": 5.0},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_outline_of_a_product_takes_no_memory(name: str) -> None:
    one = workload_of(CASES[name], "fp32")
    product, peak = with_peak(lambda: one.product_outline(one.outline()))
    assert product.data.size >= 1 << 22
    assert peak < 1 << 22


@pytest.mark.parametrize(
    "section",
    [
        {"kind": "dft", "power": True, "length": 64, "segments": 4, "sample_rate_hz": 1e3},
        {"kind": "channelise", "channels": 64, "taps": 4, "samples": 4096, "sample_rate_hz": 1e3},
    ],
    ids=lambda section: section["kind"],
)
def test_an_outline_says_no_other_frequencies_than_the_product(section: dict[str, Any]) -> None:
    """The outline's samples have no times, so the step between bins is not known."""
    one = workload_of(section, "fp32")
    found = one.product_outline(one.outline()).coordinates["frequency"]
    assert (found.values.shape, found.values.strides, found.units) == ((64,), (0,), "Hz")
