"""Frequencies of a GUPPI recording, and of spectra of its samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_chains import run

from tests.workflow.chained_cases import study_of
from tests.workflow.readers.guppi_file import SAMPLES, write
from workflow.files.units import OF_SAMPLES


@pytest.mark.parametrize("width", [-4.0, 4.0])
def test_frequencies_within_channels(tmp_path: Path, width: float) -> None:
    """They fall where OBSBW is below 0, as rawspec has it: foff = OBSBW / OBSNCHAN / N.

    The tone is 1/8 of a channel above the samples' frequency 0, in channel 1.
    """
    tone = 60 * np.exp(2j * np.pi * np.arange(SAMPLES) / 8)
    blocks = np.zeros((1, 4, SAMPLES, 2, 2), np.int8)
    blocks[0, 1, :, 0, 0], blocks[0, 1, :, 0, 1] = tone.real.round(), tone.imag.round()
    write(tmp_path / "v.raw", blocks, OBSBW=width)
    source = {"file": str(tmp_path / "v.raw"), "format": "guppi", "samples": "voltages"}
    one = {**source, "select": {"samples": {"frequency": 1, "polarization": 0}}}
    axes = {"axis": "time", "channels": 8, "taps": 1}
    centre = 1420e6 + 1e6 * width * (1.5 / 4 - 0.5)
    study = study_of({
        "fine": {"kind": "channelise", **axes, "input": source},
        "sky": {"kind": "channelise", **axes, "input": one, "centre_hz": centre, "shift": True},
        "all": {"kind": "dft", "axis": "time", "input": one},
        "back": {
            "kind": "dft", "inverse": True, "axis": "frequency",
            "input": {"samples": {"workload": "all"}},
        },
        "power": {"kind": "dft", "axis": "time", "power": True, "length": 16, "input": one},
        "across": {"kind": "dft", "inverse": True, "axis": "frequency", "input": source},
        "along": {"kind": "dft", "inverse": True, "axis": "time", "input": one},
        "again": {
            "kind": "dft", "axis": "time",
            "input": {"samples": {"workload": "sky"}, "select": {"samples": {"frequency": 5}}},
        },
    })  # fmt: skip
    found = run(study, tmp_path)
    above = 1e6 * width / 4 / 8

    def peak(name: str, axis: str) -> float:
        product = found[name]
        power = np.abs(product.data).reshape(-1, product.data.shape[-1]).sum(axis=0)
        return float(product.coordinates[axis].values[power.argmax()])

    assert peak("fine", "fine_frequency") == above
    assert peak("sky", "frequency") == centre + above
    assert peak("all", "frequency") == peak("power", "frequency") == above
    # Frequencies fall in a channel of the channel too, whose own frequency is selected.
    assert found["again"].coordinates["frequency"].values[1] * width > 0
    # Inverse transforms of samples: along channels their own steps fall, along times none do.
    across, along = (found[name].coordinates for name in ("across", "along"))
    np.testing.assert_allclose(across["frequency_time"].values, np.arange(4) / (1e6 * width))
    assert along["time_sample"].values.min() == 0
    np.testing.assert_allclose(
        found["back"].coordinates["time"].values, 1e-6 * np.arange(SAMPLES), atol=1e-15
    )


def test_power_of_channels_that_fall_changes_as_it_does(tmp_path: Path) -> None:
    """Its spectrum over time had the frequencies of a reversed one, of the other sign."""
    time = np.arange(512) * 1e-6
    rng = np.random.default_rng(7)
    wave = 60 * (1 + 0.5 * np.cos(2 * np.pi * 31250 * time + 0.7))[None, :, None]
    turned = wave * np.exp(2j * np.pi * rng.random((4, 512, 2)))
    data = np.round(np.stack([turned.real, turned.imag], axis=-1)).astype(np.int8)
    write(tmp_path / "g.raw", data[None])
    source = {"file": str(tmp_path / "g.raw"), "format": "guppi"}
    transform = {"kind": "dft", "axis": "time"}
    study = study_of({
        "power": {
            "kind": "beamforming", "beams": 1, "detect": "power", "integrate": 4,
            "input": {**source, "samples": "voltages"},
        },
        "spectrum": {**transform, "input": {"samples": {"workload": "power"}}},
        "one": {**transform, "input": {
            "samples": {"workload": "power"}, "select": {"samples": {"frequency": 1}},
        }},
    })  # fmt: skip
    found = run(study, tmp_path)
    power, spectrum = found["power"], found["spectrum"]
    bins = spectrum.coordinates["time_frequency"]
    at = int(np.abs(spectrum.data[0, 0, 0, 1:64]).argmax()) + 1
    assert bins.values[at] == pytest.approx(31250)
    assert np.all(bins.values[:64] >= 0)
    since = power.coordinates["time"].values - power.coordinates["time"].values[0]
    exact = (power.data[0, 0, 0] * np.exp(-2j * np.pi * 31250 * since)).sum()
    np.testing.assert_allclose(spectrum.data[0, 0, 0, at], exact, rtol=1e-9)
    # Nor are they offsets from the frequency of the channel whose power it is.
    assert OF_SAMPLES not in found["one"].coordinates["frequency"].long_name
    assert "selected_frequency" in found["one"].coordinates
