"""Recordings from file to product: an image of the sky, and Stokes parameters of a pulsar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.lib.stride_tricks import sliding_window_view
from scipy.signal import firwin
from test_chains import run

from tests.workflow.chained_cases import study_of
from tests.workflow.one_case import error_of
from tests.workflow.readers.guppi_file import case, parts, voltages, write
from workflow.preflight.loading import load_study
from workflow.storage.certificates import read_certificate

ANTENNAS, CHANNELS, SAMPLES, BLOCKS = 12, 4, 256, 4
LIGHT, SOURCE = 299_792_458.0, (0.2, -0.1)
NAMES = [f"{number}{letter}" for number in range(1, 5) for letter in "abc"]


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Any]:
    """A recording of a plane wave, in four files; the places of its antennas."""
    rng = np.random.default_rng(1)
    enu = rng.normal(size=(ANTENNAS, 3)) * [30, 30, 1]
    towards = np.array([*SOURCE, np.sqrt(1 - np.square(SOURCE).sum())])
    hertz = 1e6 * (1420 - 4 * ((np.arange(CHANNELS) + 0.5) / CHANNELS - 0.5))
    phases = np.exp(2j * np.pi * hertz[:, None] * (enu @ towards) / LIGHT)  # it arrives earlier
    count = BLOCKS * SAMPLES
    wave = rng.normal(size=(2, CHANNELS, count)).T @ np.array([1, 1j])  # (time, channel)
    clean = phases.T[:, :, None] * wave.T
    parts = np.stack([clean.real, clean.imag], -1)[..., None, :].repeat(2, axis=-2)
    noisy = 25 * parts + 5 * rng.normal(size=parts.shape)
    stored = noisy.round().clip(-128, 127).astype(np.int8)
    blocks = stored.reshape(ANTENNAS * CHANNELS, BLOCKS, SAMPLES, 2, 2).swapaxes(0, 1)
    for number in range(BLOCKS):
        write(
            tmp_path / f"array.{number:04d}.raw", blocks[number : number + 1], number,
            OBSNCHAN=ANTENNAS * CHANNELS, NANTS=ANTENNAS, NPOL=2, PIPERBLK=SAMPLES,
        )  # fmt: skip
    return {
        name: {"values": enu[:, column].tolist(), "units": "m", "axis": "antenna"}
        for column, name in enumerate(("east", "north", "up"))
    }


def test_the_source_is_where_it_was_planted(tmp_path: Path, places: dict[str, Any]) -> None:
    """Places of antennas could be said of HDF5 files alone, so no image came of a recording."""
    axes = ["time", "antenna", "polarization", "frequency"]
    source = {
        **case(tmp_path / "array.*.raw")["input"], "axes": axes,
        "coordinates": {"antenna": NAMES, **places},
    }  # fmt: skip
    bank = {"kind": "channelise", "channels": 4, "taps": 2, "axis": "time", "input": source}
    visibilities = {
        "kind": "correlate", "integrate": 17,
        "input": {
            "voltages": {"workload": "bank"},
            "axes": {
                "voltages": ["antenna", "polarization", "frequency", "time", "fine_frequency"]
            },
            "select": {"voltages": {"polarization": 1, "fine_frequency": 0}},
        },
    }  # fmt: skip
    image = {
        "kind": "image", "directions": {"n": 41, "field_of_view_deg": 60}, "sum": ["time"],
        "input": {"covariances": {"workload": "visibilities"}},
    }  # fmt: skip
    study = study_of({"bank": bank, "visibilities": visibilities, "image": image})
    found = run(study, tmp_path)["image"]
    there = found.coordinates
    row, column = np.unravel_index(found.data[0, 0].argmax(), (41, 41))
    place = there["l"].values[column], there["m"].values[row]
    np.testing.assert_allclose(place, SOURCE, atol=1e-9)
    assert there["antenna"].values.tolist() == NAMES
    assert there["polarization"].values.tolist() == ["y"]
    np.testing.assert_allclose(
        there["summed_frequency"].values, 1e6 * np.array([1421.5, 1420.5, 1419.5, 1418.5])
    )
    assert "since 2018-01-14T14:11:33.000000000 UTC" in there["summed_time"].long_name
    assert there["selected_fine_frequency"].values.tolist() == [0.0]
    certificate = read_certificate(tmp_path / "image" / "products" / "w.h5")
    assert "the file's bandwidth is below 0: where a receiver has rever" in certificate["caveats"]


def test_what_stands_along_an_axis_must_fit_it(tmp_path: Path, places: dict[str, Any]) -> None:
    path = tmp_path / "array.*.raw"
    for name, values, said in (
        ("east", {**places["east"], "values": [1.0, 2.0]}, "east must have 12 values, got 2"),
        ("east", {**places["east"], "axis": "beam"}, "east: must be of an axis of the operands, "
         "['time', 'antenna', 'polarization', 'frequency'], got 'beam'"),
        ("frequency", {**places["east"]}, "frequency: 'frequency' is an axis of its own; it stands "
         "along antenna by no name"),
    ):  # fmt: skip
        given = case(path, coordinates={name: values})
        assert error_of(given).startswith(f"input.coordinates.{said}")


def test_stokes_parameters_are_those_of_numpys_lines(tmp_path: Path, root: Path) -> None:
    blocks = parts(4, shape=(4, 1024, 2))
    path = tmp_path / "short.raw"
    write(path, blocks, OBSFREQ=356.6875, OBSBW=0.001, TBIN=0.004)
    text = (root / "examples" / "pulsar.yaml").read_text()
    config = yaml.safe_load(text.replace("examples/data/pulsar/sample_puppi.raw", str(path)))
    study = load_study(config | {"device": "cpu", "precisions": ["fp64"], "baselines": "none"})
    found = run(study, tmp_path)
    x = voltages(blocks)[..., 1]  # (time, polarization) of the second channel
    frames = sliding_window_view(x, 64, axis=0)[:3840:16] * firwin(64, 1 / 16)
    spectra = np.fft.fft(frames.reshape(240, 2, 4, 16).sum(axis=2))
    one, other = np.fft.fftshift(spectra, axes=-1).swapaxes(0, 1)
    cross = 2 * one.conj() * other
    stokes = (
        abs(one) ** 2 + abs(other) ** 2,
        abs(one) ** 2 - abs(other) ** 2,
        cross.real,
        cross.imag,
    )
    expected = np.stack(stokes).reshape(4, 30, 8, 16).sum(axis=2)  # (stokes, time, frequency)
    power = found["stokes"]
    assert power.axes == ("frequency", "stokes", "beam", "time")
    np.testing.assert_allclose(
        power.data[:, :, 0].transpose(1, 2, 0), expected, rtol=1e-5, atol=1e-5 * expected.max()
    )
    # The second of four channels of 250 Hz about 356.6875 MHz, and the channels within it.
    frequency = 356_687_375 + 125 / 8 * np.arange(-8, 8)
    assert power.coordinates["frequency"].values.tolist() == frequency.tolist()
    assert found["spectrogram"].data.shape == (2, 4, 31, 64)
